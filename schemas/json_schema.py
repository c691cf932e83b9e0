"""JSON Schema and AsyncAPI of what goes in and comes out, generated from the types."""

from typing import Any

import msgspec

from schemas.change_event import NativeEvent
from schemas.outcome import DeadLetter, Outcome
from schemas.record import Record

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_CHANNELS = {
    "events": (
        "/v1/events",
        "changeEvent",
        "receive",
        "Over HTTP: one event, a list, or NDJSON. Debezium and CloudEvents 1.0 are told apart by their content.",
    ),
    "sources": (
        "{source}.{collection}",
        "changeEvent",
        "receive",
        "On Kafka: the topic of one source collection, keyed by the record's key. Any of the three envelopes.",
    ),
    "records": ("records", "record", "send", "The newest version of every record by source position; compacted."),
    "deadLetters": (
        "dead-letters",
        "deadLetter",
        "send",
        "Events that cannot be applied as they are, with reason and payload.",
    ),
    "outcomes": ("outcomes", "outcome", "send", "How each event ended; announcements may repeat under one id."),
}


def event_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of the native envelope."""
    _, components = msgspec.json.schema_components([NativeEvent], ref_template="#/$defs/{name}")
    schema = components.pop(NativeEvent.__name__)
    # What the types cannot say: an upsert needs its record, and something must order the versions.
    rules = [
        {"if": {"properties": {"op": {"const": "delete"}}, "required": ["op"]}, "else": _needs("record", "object")},
        {"anyOf": [_needs("position", "integer", "string"), _needs("occurred_at", "string")]},
    ]
    defs = {"$defs": components} if components else {}
    return {"$schema": DIALECT, **schema, "title": "Shinsen change event", "allOf": rules, **defs}


def asyncapi() -> dict[str, Any]:
    """Return an AsyncAPI 3.0 document of all channels: events in, records, dead letters and outcomes out."""
    kinds = {"changeEvent": NativeEvent, "record": Record, "deadLetter": DeadLetter, "outcome": Outcome}
    payloads, components = msgspec.json.schema_components(kinds.values(), ref_template="#/components/schemas/{name}")
    messages = {
        name: {"name": name, "contentType": "application/json", "payload": payload}
        for name, payload in zip(kinds, payloads, strict=True)
    }
    return {
        "asyncapi": "3.0.0",
        "info": {"title": "Shinsen change events", "version": "1"},
        "defaultContentType": "application/json",
        "channels": {name: _channel(name) for name in _CHANNELS},
        "operations": {_operation(name): _of(name) for name in _CHANNELS},
        "components": {"schemas": components, "messages": messages},
    }


def _needs(name: str, *kinds: str) -> dict[str, Any]:
    return {"required": [name], "properties": {name: {"type": list(kinds)}}}


def _channel(name: str) -> dict[str, Any]:
    address, message, _, description = _CHANNELS[name]
    channel: dict[str, Any] = {
        "address": address,
        "description": description,
        "messages": {message: {"$ref": f"#/components/messages/{message}"}},
    }
    if "{" in address:
        channel["parameters"] = {
            "source": {"description": "Name of the source system, such as a Debezium topic prefix."},
            "collection": {
                "description": "Name of the table or collection, with its schema when that is not the usual one."
            },
        }
    return channel


def _operation(name: str) -> str:
    return f"{_CHANNELS[name][2]}{name[0].upper()}{name[1:]}"


def _of(name: str) -> dict[str, Any]:
    _, message, action, _ = _CHANNELS[name]
    return {
        "action": action,
        "channel": {"$ref": f"#/channels/{name}"},
        "messages": [{"$ref": f"#/channels/{name}/messages/{message}"}],
    }
