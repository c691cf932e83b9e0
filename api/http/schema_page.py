"""The OpenAPI description, and a plain page that lists it: no script, nothing from other hosts."""

from html import escape
from typing import Any

from litestar import Request
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin, OpenAPIRenderPlugin, YamlRenderPlugin
from litestar.openapi.spec import Tag

_METHODS = ("get", "post", "put", "patch", "delete")
_TAGS = (
    Tag(name="events", description="Change events in"),
    Tag(name="questions", description="Questions and searches"),
    Tag(name="documents", description="Documents as they are kept"),
    Tag(name="graph", description="Entities, facts, SPARQL"),
    Tag(name="operations", description="Freshness, dead letters, probes, metrics"),
)
STYLE = (
    "body{font:16px/1.6 system-ui,sans-serif;max-width:60rem;margin:0 auto;padding:1rem;color:#1a1a1a;background:#fff}"
    "h2{margin-top:2rem}code{background:#f2f2f2;padding:.1em .3em;border-radius:3px}"
    "dt{font-weight:600;margin-top:1rem}dd{margin:0 0 0 1rem}.m{display:inline-block;min-width:3.5rem}"
    "@media(prefers-color-scheme:dark){body{background:#16181c;color:#e8e8e8}code{background:#2a2d33}a{color:#8ab4f8}}"
)


class ListingPlugin(OpenAPIRenderPlugin):
    """Renders paths, parameters and answers as a plain HTML list."""

    def __init__(self) -> None:
        """Serve at /schema."""
        super().__init__(path="/")

    def render(self, request: Request[Any, Any, Any], openapi_schema: dict[str, Any]) -> bytes:
        """Return the page."""
        title = escape(openapi_schema["info"]["title"])
        sections = "".join(_section(tag.name, tag.description or "", openapi_schema["paths"]) for tag in _TAGS)
        return (
            f'<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
            f"<title>{title} API</title><style>{STYLE}</style><h1>{title} API</h1>"
            '<p><a href="/schema/openapi.json">openapi.json</a> · <a href="/schema/openapi.yaml">openapi.yaml</a> · '
            f'<a href="/schema/channels">change events (AsyncAPI)</a> · <a href="/">console</a></p>{sections}</html>'
        ).encode()


def _section(tag: str, description: str, paths: dict[str, Any]) -> str:
    """List the operations of one tag."""
    items = [
        _operation(path, method, operation)
        for path, methods in sorted(paths.items())
        for method, operation in methods.items()
        if method in _METHODS and tag in operation.get("tags", [])
    ]
    return f"<h2>{escape(description)}</h2><dl>{''.join(items)}</dl>" if items else ""


def _operation(path: str, method: str, operation: dict[str, Any]) -> str:
    parameters = ", ".join(_parameter(one) for one in operation.get("parameters", []))
    lines = [escape(operation.get("summary", ""))]
    if parameters:
        lines.append(f"Parameters: {parameters}")
    if body := _body(operation):
        lines.append(f"Body: {body}")
    return f'<dt><span class="m">{method.upper()}</span> <code>{escape(path)}</code></dt><dd>{"<br>".join(lines)}</dd>'


def _parameter(parameter: dict[str, Any]) -> str:
    required = "" if parameter.get("required") else " (optional)"
    return f"<code>{escape(parameter['name'])}</code>{required}"


def _body(operation: dict[str, Any]) -> str:
    content = operation.get("requestBody", {}).get("content", {})
    names = [media["schema"].get("$ref", "").rpartition("/")[2] for media in content.values() if "schema" in media]
    return ", ".join(f"<code>{escape(name)}</code>" for name in names if name)


def openapi_config(version: str) -> OpenAPIConfig:
    """Return the configuration of /schema."""
    return OpenAPIConfig(
        title="Shinsen",
        version=version,
        description="Change events in; routed, cited answers out. Errors are RFC 9457 problem details.",
        path="/schema",
        tags=list(_TAGS),
        render_plugins=[ListingPlugin(), JsonRenderPlugin(), YamlRenderPlugin()],
    )
