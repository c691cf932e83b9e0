"""`GET /v1/documents` and one document."""

from typing import Annotated, Any
from urllib.parse import unquote

import msgspec
from litestar import Request, get
from litestar.exceptions import NotFoundException
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath, FromQuery, QueryParameter

from api.http.given import Given
from api.http.later import NotYet
from api.retrieval.access import Asker
from api.retrieval.document_view import DocumentView, view_document
from api.retrieval.reader import document_info, open_reader
from pipeline.ports.runtime import Runtime
from schemas.change_event import document_key, split_document_key
from schemas.query import DocumentInfo


class DocumentList(msgspec.Struct, frozen=True, kw_only=True):
    """A page of documents in key order; pass `next` as `after` for the next page."""

    documents: list[DocumentInfo]
    next: str


@get("/v1/documents/{source:str}/{collection:str}/{key:path}", tags=["documents"], summary="One document")
async def document(
    source: FromPath[str],
    collection: FromPath[str],
    key: FromPath[str],
    request: Request[Any, Any, Any],
    asker: Given[Asker],
    runtime: Given[Runtime],
    as_of: FromQuery[str | None] = None,
) -> DocumentView:
    """Return record, fields, chunks, facts, version and ACL; 404 also when the asker may not read it."""
    if as_of is not None:
        raise NotYet("Reading documents as of a past time is not in this version.")
    name = document_key(source, collection, _key_as_sent(request, key.removeprefix("/")))
    async with open_reader(runtime, asker) as reader:
        view = await view_document(reader, runtime.mappings, name)
    if view is None:
        raise NotFoundException("There is no such document, or you may not read it.")
    return view


def _key_as_sent(request: Request[Any, Any, Any], routed: str) -> str:
    """Return the key with all its slashes (it may be a URL or a folder): routing takes `//` and a last `/` away."""
    raw = bytes(request.scope.get("raw_path") or b"").decode("latin-1").partition("/v1/documents/")[2]
    sent = unquote("/".join(raw.split("/")[2:]))
    return sent if sent.replace("/", "") == routed.replace("/", "") else routed


@get("/v1/documents", tags=["documents"], summary="Documents in key order")
async def documents(
    asker: Given[Asker],
    runtime: Given[Runtime],
    source: FromQuery[str] = "",
    collection: FromQuery[str] = "",
    after: FromQuery[str] = "",
    limit: Annotated[int, QueryParameter(ge=1, le=200)] = 50,
) -> DocumentList:
    """List what the asker may read."""
    found: list[DocumentInfo] = []
    async with open_reader(runtime, asker) as reader:
        async for manifest in runtime.state.scan_manifests(reader.generation):
            if manifest.document <= after or not asker.may_read(manifest):
                continue
            its_source, its_collection, _ = split_document_key(manifest.document)
            if source in ("", its_source) and collection in ("", its_collection):
                found.append(document_info(manifest))
            if len(found) > limit:
                break
    return DocumentList(documents=found[:limit], next=found[limit - 1].key if len(found) > limit else "")


HANDLERS: list[HTTPRouteHandler] = [document, documents]
