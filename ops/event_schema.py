"""JSON Schema and AsyncAPI of what goes in and comes out, generated from the types."""

from typing import Any

import msgspec

from schemas.change_event import NativeEvent
from schemas.outcome import Outcome

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def event_schema() -> dict[str, Any]:
    """Return the JSON Schema of the native envelope."""
    schema, components = msgspec.json.schema_components([NativeEvent], ref_template="#/$defs/{name}")
    return {"$schema": DIALECT, "title": "Shinsen change event", **schema[0], "$defs": components}


def asyncapi() -> dict[str, Any]:
    """Return an AsyncAPI 3 document: events in (HTTP, and the Kafka topic of the stack), outcomes out."""
    (event, outcome), components = msgspec.json.schema_components(
        [NativeEvent, Outcome], ref_template="#/components/schemas/{name}"
    )
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Shinsen change events",
            "version": "1",
            "description": "Change events in the native envelope. Debezium and CloudEvents 1.0 envelopes are taken "
            "on the same channel and told apart by their content.",
        },
        "defaultContentType": "application/json",
        "channels": {
            "events": _channel("/v1/events", "Events of the sources, in order for each key", "changeEvent"),
            "outcomes": _channel("outcomes", "How each event ended; announcements may repeat under one id", "outcome"),
        },
        "operations": {
            "publishEvent": {"action": "receive", "channel": {"$ref": "#/channels/events"}},
            "announceOutcome": {"action": "send", "channel": {"$ref": "#/channels/outcomes"}},
        },
        "components": {
            "schemas": components,
            "messages": {
                "changeEvent": {"contentType": "application/json", "payload": event},
                "outcome": {"contentType": "application/json", "payload": outcome},
            },
        },
    }


def _channel(address: str, description: str, message: str) -> dict[str, Any]:
    reference = {"$ref": f"#/components/messages/{message}"}
    return {"address": address, "description": description, "messages": {message: reference}}
