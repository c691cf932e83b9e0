"""The SPARQL 1.1 protocol over HTTP: queries, updates, time-outs, and errors in our words."""

import asyncio
import math
from collections.abc import Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx
import msgspec

from pipeline.backends.graph_terms import Iri, Typed, canonical_literal
from pipeline.errors import BackendUnavailable, InvalidConfiguration, InvalidQuery, QueryTimeout
from pipeline.steps.iris import XSD
from schemas.knowledge import LiteralValue

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

RESULTS, TRIPLES = "application/sparql-results+json", "application/n-triples"
CANCELLED = b"The SPARQL operation has been cancelled"
"""What Oxigraph's server writes behind a result that its time-out has cut off, under status 200."""
CONNECT_S = 5.0


class SparqlEndpoint(msgspec.Struct, frozen=True):
    """Where a server takes queries and updates, and how long our own requests may run."""

    query: str
    update: str
    timeout_s: float = 60.0


class Answer(msgspec.Struct, frozen=True):
    """A whole, checked result."""

    media_type: str
    body: bytes


class _Cell(msgspec.Struct, frozen=True):
    type: str
    value: str
    datatype: str = XSD + "string"


class _Bindings(msgspec.Struct, frozen=True):
    bindings: list[dict[str, _Cell]] = []


class _Results(msgspec.Struct, frozen=True):
    results: _Bindings = _Bindings()


Row = Mapping[str, Iri | Typed]


def check_endpoint(endpoint: SparqlEndpoint) -> None:
    """Raise InvalidConfiguration for an address that is none."""
    for address in (endpoint.query, endpoint.update):
        at = urlsplit(address)
        if at.scheme not in ("http", "https") or not at.hostname:
            raise InvalidConfiguration(
                f"the SPARQL address {address!r} is no HTTP address; write SHINSEN_SPARQL like http://host:3030/ds"
            )


class SparqlClient:
    """Talks to one server. Every method raises BackendUnavailable when it does not answer as it should."""

    def __init__(self, endpoint: SparqlEndpoint) -> None:
        check_endpoint(endpoint)
        self._at = endpoint
        self._http = httpx.AsyncClient(timeout=httpx.Timeout(endpoint.timeout_s, connect=CONNECT_S))

    async def close(self) -> None:
        """Close the connections; idempotent."""
        await self._http.aclose()

    async def update(self, text: str) -> None:
        """Send one update request: a server makes all of it or nothing visible."""
        headers = {"Content-Type": "application/sparql-update"}
        try:
            response = await self._http.post(self._at.update, content=text.encode(), headers=headers)
        except (httpx.HTTPError, RuntimeError) as error:
            raise self._unavailable(self._at.update, error) from error
        if response.status_code >= 300:
            raise self._unavailable(self._at.update, f"status {response.status_code}: {response.text[:300]}")

    async def select(self, text: str) -> list[Row]:
        """Run a query of our own over the whole dataset; a result that is not whole is an error."""
        async with self._answering({"query": text}, RESULTS) as response:
            body = await response.aread()
        if response.status_code >= 300 or body.endswith(CANCELLED):
            raise self._unavailable(
                self._at.query, f"status {response.status_code}: {body[-300:].decode('utf-8', 'replace')}"
            )
        try:
            found = msgspec.json.decode(body, type=_Results)
        except msgspec.DecodeError as error:
            raise self._unavailable(self._at.query, f"a result that is cut off or no JSON ({error})") from error
        return [{name: _term(cell) for name, cell in row.items()} for row in found.results.bindings]

    async def ask(self, sparql: str, graphs: Sequence[str], *, timeout_s: float, max_bytes: int) -> Answer:
        """Run somebody's query over these graphs only, each of them named and all of them the default graph.

        Raises QueryTimeout, and InvalidQuery when the server refuses it or the answer is over `max_bytes`.
        The server must have a time-out of its own, or take ours (`timeout`, in whole seconds, as Fuseki).
        """
        fields: dict[str, Any] = {
            "query": sparql,
            "default-graph-uri": list(graphs),
            "named-graph-uri": list(graphs),
            "timeout": str(math.ceil(timeout_s)),
        }
        try:
            async with asyncio.timeout(timeout_s), self._answering(fields, f"{RESULTS}, {TRIPLES};q=0.9") as response:
                body = await _limited(response, max_bytes)
        except TimeoutError:
            raise QueryTimeout(f"the query ran longer than {timeout_s:g} s and was stopped; ask for less") from None
        return self._checked(response, body)

    def _checked(self, response: httpx.Response, body: bytes) -> Answer:
        media_type = response.headers.get("content-type", "").partition(";")[0].strip()
        if body.endswith(CANCELLED) or (response.status_code == 503 and b"timed out" in body):
            raise QueryTimeout("the query ran longer than the server lets it and was stopped; ask for less")
        if response.status_code in (400, 413, 414):
            raise InvalidQuery(_shown(body) or "the server refused the query")
        if response.status_code >= 300:
            raise self._unavailable(
                self._at.query, f"status {response.status_code}: {body[:300].decode('utf-8', 'replace')}"
            )
        if media_type == RESULTS:
            try:
                msgspec.json.decode(body, type=msgspec.Raw)
            except msgspec.DecodeError as error:
                raise self._unavailable(self._at.query, f"a result that is cut off ({error})") from error
        return Answer(media_type, body)

    @asynccontextmanager
    async def _answering(self, fields: dict[str, Any], accept: str) -> "AsyncIterator[httpx.Response]":
        try:
            async with self._http.stream("POST", self._at.query, data=fields, headers={"Accept": accept}) as response:
                yield response
        except (httpx.HTTPError, RuntimeError) as error:
            raise self._unavailable(self._at.query, error) from error

    def _unavailable(self, address: str, why: object) -> BackendUnavailable:
        text = f"{type(why).__name__} {why}" if isinstance(why, Exception) else str(why)
        return BackendUnavailable(f"the SPARQL server at {address}: {text}; check that it runs and is reachable")


async def _limited(response: httpx.Response, max_bytes: int) -> bytes:
    body = bytearray()
    async for part in response.aiter_bytes():
        body += part
        if len(body) > max_bytes:
            raise InvalidQuery("the result is over the size limit; add LIMIT or ask for fewer columns")
    return bytes(body)


def _shown(body: bytes) -> str:
    return body[:300].decode("utf-8", "replace").strip()


def _term(cell: _Cell) -> Iri | Typed:
    """Return a term; literals in our canonical form, whatever form the server gives to numbers and times."""
    if cell.type == "uri":
        return Iri(cell.value)
    if cell.datatype.startswith(XSD) and cell.datatype != XSD + "string":
        return canonical_literal(LiteralValue(cell.value, cell.datatype.removeprefix(XSD)))
    return Typed(cell.value, cell.datatype)
