"""`/v1/dead-letters`: events that could not be applied; for operators, because no ACL was read from them."""

import base64
from typing import Annotated, Any

import msgspec
from litestar import Response, get, post
from litestar.exceptions import NotFoundException
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath, FromQuery, QueryParameter

from api.http.asker import operator_only
from api.http.given import Given
from api.retrieval.access import Asker
from pipeline.ports.runtime import Runtime
from schemas.outcome import DeadLetter


class LetterView(msgspec.Struct, frozen=True, kw_only=True):
    """A dead letter; the payload as text when it is UTF-8, else in base64."""

    id: str
    event: str
    code: str
    reason: str
    document: str
    position: str
    stage: str
    at: str
    attempts: int
    resolved: bool
    bytes: int
    headers: dict[str, str]
    payload: str | None = None
    payload_base64: str | None = None


class LetterList(msgspec.Struct, frozen=True, kw_only=True):
    """A page of letters; pass `next` as `after` for the next page."""

    dead_letters: list[LetterView]
    next: str


@get("/v1/dead-letters", tags=["operations"], summary="Dead letters")
async def letters(
    asker: Given[Asker],
    runtime: Given[Runtime],
    after: FromQuery[str] = "",
    limit: Annotated[int, QueryParameter(ge=1, le=200)] = 50,
    resolved: FromQuery[bool] = False,
) -> LetterList:
    """List letters without their payloads."""
    operator_only(asker)
    found = await runtime.state.dead_letters(after=after, limit=limit + 1, resolved=resolved)
    page = [_view(letter, whole=False) for letter in found[:limit]]
    return LetterList(dead_letters=page, next=page[-1].id if len(found) > limit else "")


@get("/v1/dead-letters/{letter:str}", tags=["operations"], summary="One dead letter with its payload")
async def letter(letter: FromPath[str], asker: Given[Asker], runtime: Given[Runtime]) -> LetterView:
    """Return one."""
    operator_only(asker)
    found = await runtime.state.dead_letter(letter)
    if found is None:
        raise NotFoundException("There is no such dead letter.")
    return _view(found, whole=True)


@post("/v1/dead-letters/{letter:str}/retry", status_code=202, tags=["operations"], summary="Try a dead letter again")
async def retry(letter: FromPath[str], asker: Given[Asker], runtime: Given[Runtime]) -> Response[dict[str, Any]]:
    """Queue it again."""
    operator_only(asker)
    if await runtime.state.dead_letter(letter) is None:
        raise NotFoundException("There is no such dead letter.")
    done = await runtime.retry([letter])
    status = done.get(letter, "")
    return Response({"id": letter, "status": status}, status_code=202 if status == "queued" else 200)


def _view(letter: DeadLetter, *, whole: bool) -> LetterView:
    text, encoded = _payload(letter.payload) if whole else (None, None)
    return LetterView(
        id=letter.id,
        event=letter.event,
        code=letter.code,
        reason=letter.reason,
        document=letter.document,
        position=letter.position,
        stage=letter.stage,
        at=letter.at,
        attempts=letter.attempts,
        resolved=letter.resolved,
        bytes=len(letter.payload),
        headers=letter.headers,
        payload=text,
        payload_base64=encoded,
    )


def _payload(raw: bytes) -> tuple[str | None, str | None]:
    try:
        return raw.decode("utf-8"), None
    except UnicodeDecodeError:
        return None, base64.b64encode(raw).decode()


HANDLERS: list[HTTPRouteHandler] = [letters, letter, retry]
