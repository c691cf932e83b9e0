"""What the contract names and a later version brings: 501, with a sentence that says so."""

from typing import Any

from litestar import Request, post
from litestar.handlers import HTTPRouteHandler

from pipeline.errors import ShinsenError


class NotYet(ShinsenError):
    """The request asks for something that this version does not have: HTTP 501."""


@post("/v1/nl2sparql", status_code=200, summary="Natural language to SPARQL (not in this version)", tags=["graph"])
async def nl2sparql(request: Request[Any, Any, Any]) -> None:
    """Answer 501."""
    raise NotYet("Turning questions into SPARQL is not in this version; POST /v1/sparql takes SPARQL itself.")


HANDLERS: list[HTTPRouteHandler] = [nl2sparql]
