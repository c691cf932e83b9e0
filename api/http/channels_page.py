"""The AsyncAPI description of the channels and the JSON Schema of an event, as files and as one plain page."""

from html import escape
from typing import Any

from litestar import MediaType, Response, get

from api.http.schema_page import STYLE
from schemas.json_schema import asyncapi, event_schema


@get("/schema/asyncapi.json", sync_to_thread=True, include_in_schema=False)
def asyncapi_json() -> Response[dict[str, Any]]:
    """Return the AsyncAPI 3 document."""
    return Response(asyncapi())


@get("/schema/event.json", sync_to_thread=True, include_in_schema=False)
def event_json() -> Response[dict[str, Any]]:
    """Return the JSON Schema of the native envelope."""
    return Response(event_schema(), media_type="application/schema+json")


@get("/schema/channels", sync_to_thread=True, include_in_schema=False)
def channels_page() -> Response[bytes]:
    """Return the page."""
    document = asyncapi()
    channels = "".join(_channel(channel) for channel in document["channels"].values())
    schemas = "".join(_schema(name, schema) for name, schema in sorted(document["components"]["schemas"].items()))
    page = (
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>Shinsen change events</title><style>{STYLE}</style><h1>Change events</h1>"
        '<p><a href="/schema/asyncapi.json">asyncapi.json</a> · <a href="/schema/event.json">event.json</a> · '
        f'<a href="/schema">API</a></p><h2>Channels</h2><dl>{channels}</dl><h2>Messages</h2>{schemas}</html>'
    )
    return Response(page.encode(), media_type=MediaType.HTML)


def _channel(channel: dict[str, Any]) -> str:
    messages = ", ".join(f"<code>{escape(name)}</code>" for name in channel["messages"])
    return f"<dt><code>{escape(channel['address'])}</code></dt><dd>{escape(channel['description'])}<br>{messages}</dd>"


def _schema(name: str, schema: dict[str, Any]) -> str:
    required = set(schema.get("required", ()))
    rows = "".join(
        f"<dt><code>{escape(member)}</code>{'' if member in required else ' (optional)'}</dt>"
        f"<dd>{escape(_kind(one))}<br>{escape(one.get('description', ''))}</dd>"
        for member, one in schema.get("properties", {}).items()
    )
    return f"<h3>{escape(name)}</h3><p>{escape(schema.get('description', ''))}</p><dl>{rows}</dl>"


def _kind(schema: dict[str, Any]) -> str:
    """Return the type of a member in words."""
    if "enum" in schema:
        return " | ".join(str(value) for value in schema["enum"])
    if "anyOf" in schema:
        return " | ".join(_kind(one) for one in schema["anyOf"])
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    return str(schema.get("type", "any"))


HANDLERS = (asyncapi_json, event_json, channels_page)
