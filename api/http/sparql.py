"""`POST /v1/sparql`: read-only SPARQL over what the asker may read."""

import re
from typing import Any

import msgspec
from litestar import Request, Response, post
from litestar.exceptions import HTTPException
from litestar.handlers import HTTPRouteHandler

from api.http.body import decode_body
from api.http.described import SparqlOperation
from api.http.given import Given
from api.options import ApiOptions
from api.retrieval.access import Asker
from api.retrieval.reader import open_reader
from pipeline.errors import InvalidQuery
from pipeline.ports.runtime import Runtime

JSON, XML = "application/sparql-results+json", "application/sparql-results+xml"
CSV, TSV = "text/csv", "text/tab-separated-values"
TURTLE, NTRIPLES = "text/turtle", "application/n-triples"
_ROWS = {JSON: JSON, "application/json": JSON, XML: XML, "application/xml": XML, CSV: CSV, TSV: TSV}
_TRIPLES = {TURTLE: TURTLE, "application/x-turtle": TURTLE, NTRIPLES: NTRIPLES, "text/plain": NTRIPLES}
_WILD = {"*/*", "application/*", "text/*"}
_NOISE = re.compile(r"#[^\n\r]*|<[^<>\s]*>|\bPREFIX\s+\S*\s*|\bBASE\b", re.IGNORECASE)
_FORM = re.compile(r"\b(SELECT|ASK|CONSTRUCT|DESCRIBE)\b", re.IGNORECASE)


class SparqlRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A query."""

    query: str


@post(
    "/v1/sparql",
    status_code=200,
    tags=["graph"],
    summary="SPARQL, read only",
    operation_class=SparqlOperation,
)
async def sparql(
    request: Request[Any, Any, Any], asker: Given[Asker], runtime: Given[Runtime], options: Given[ApiOptions]
) -> Response[bytes]:
    """Run SELECT, ASK, CONSTRUCT or DESCRIBE; the body is `{"query": …}` or `application/sparql-query`."""
    query = await _query(request)
    accept = negotiate(query, request.headers.get("accept", "*/*"))
    async with open_reader(runtime, asker) as reader:
        result = await reader.indexes.graph.query(
            query,
            reader.classes,
            timeout_s=options.sparql_timeout_s,
            accept=accept,
            max_bytes=options.sparql_max_bytes,
        )
    return Response(result, media_type=accept)


async def _query(request: Request[Any, Any, Any]) -> str:
    media = request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    body = await request.body()
    if media == "application/sparql-query":
        try:
            return body.decode("utf-8")
        except UnicodeDecodeError as error:
            raise InvalidQuery("the query is not UTF-8") from error
    if media != "application/json":
        raise HTTPException(status_code=415, detail=f"Send application/json or application/sparql-query, not {media}.")
    return decode_body(body, SparqlRequest).query


def negotiate(query: str, accept: str) -> str:
    """Return the media type of the result: the best of `accept` that this form of query can have."""
    form = _FORM.search(_NOISE.sub(" ", query))
    offered = _TRIPLES if form and form[1].upper() in ("CONSTRUCT", "DESCRIBE") else _ROWS
    for media in _by_preference(accept):
        if media in offered:
            return offered[media]
        if media in _WILD:
            return next(iter(offered.values()))
    raise HTTPException(
        status_code=406, detail="This query can be answered as " + ", ".join(dict.fromkeys(offered.values()))
    )


def _by_preference(accept: str) -> list[str]:
    """Order media types by their q; those with q=0 are left out."""
    found: list[tuple[float, int, str]] = []
    for place, item in enumerate(accept.lower().split(",")):
        media, *parameters = [part.strip() for part in item.split(";")]
        quality = next((p[2:] for p in parameters if p.startswith("q=")), "1")
        value = float(quality) if re.fullmatch(r"[01](\.\d{0,3})?", quality) else 1.0
        if media and value > 0:
            found.append((-value, place, media))
    return [media for _, _, media in sorted(found)]


HANDLERS: list[HTTPRouteHandler] = [sparql]
