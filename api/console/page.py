"""Serves the console's three files. Document text is hostile: the page builds text nodes only, and the CSP holds."""

from importlib.resources import files

from litestar import Response, get
from litestar.exceptions import NotFoundException
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

_CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_ASSETS = {"console.css": "text/css", "console.js": "text/javascript", "render.js": "text/javascript"}
_HEADERS = {"Content-Security-Policy": _CSP, "Referrer-Policy": "no-referrer", "Cache-Control": "no-cache"}


def _serve(name: str, media_type: str) -> Response[bytes]:
    content = files("api.console").joinpath("static", name).read_bytes()
    return Response(content, media_type=media_type, headers=_HEADERS)


@get("/", include_in_schema=False, sync_to_thread=False)
def page() -> Response[bytes]:
    """Serve the page."""
    return _serve("index.html", "text/html")


@get("/console/{name:str}", include_in_schema=False, sync_to_thread=False)
def asset(name: FromPath[str]) -> Response[bytes]:
    """Serve the style sheet or a script."""
    if name not in _ASSETS:
        raise NotFoundException("There is no such file.")
    return _serve(name, _ASSETS[name])


HANDLERS: list[HTTPRouteHandler] = [page, asset]
