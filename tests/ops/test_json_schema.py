"""The generated JSON Schema agrees with the decoder, and the AsyncAPI document with itself."""

from typing import Any

import msgspec
import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from pipeline.decoding import decode
from pipeline.errors import InvalidEvent
from pipeline.mapping import Mappings
from schemas.change_event import RawEvent
from schemas.json_schema import asyncapi, event_schema
from schemas.outcome import DeadLetter, Outcome

EVENT: dict[str, Any] = {"source": "crm", "collection": "customers", "key": "C-1", "position": 1, "record": {}}


@pytest.mark.parametrize(
    ("changes", "good"),
    [
        ({}, True),
        ({"position": "0/16B3748"}, True),
        ({"position": None, "occurred_at": "2025-07-08T09:00:00"}, True),
        ({"op": "delete", "record": None}, True),
        ({"more": "is allowed"}, True),
        ({"op": "insert"}, False),
        ({"record": None}, False),
        ({"record": []}, False),
        ({"position": None}, False),
        ({"position": 1.5}, False),
        ({"key": 7}, False),
        ({"source": None}, False),
    ],
)
def test_schema_and_decoder_agree(changes: dict[str, Any], good: bool) -> None:
    event = {**EVENT, **changes}
    schema = event_schema()
    Draft202012Validator.check_schema(schema)
    assert Draft202012Validator(schema).is_valid(event) is good
    try:
        decode(RawEvent(value=msgspec.json.encode(event)), Mappings())
    except InvalidEvent:
        assert not good
    else:
        assert good


def resolve(document: dict[str, Any], reference: str) -> Any:
    found: Any = document
    for step in reference.removeprefix("#/").split("/"):
        found = found[step]
    return found


def references(part: Any) -> list[str]:
    if isinstance(part, dict):
        own = [part["$ref"]] if isinstance(part.get("$ref"), str) else []
        return own + [r for value in part.values() for r in references(value)]
    return [r for value in part for r in references(value)] if isinstance(part, list) else []


def test_asyncapi_points_at_what_it_has() -> None:
    document = asyncapi()
    assert document["asyncapi"].startswith("3.")
    for reference in references(document):
        assert resolve(document, reference)
    assert {c["address"] for c in document["channels"].values()} >= {
        "/v1/events",
        "records",
        "dead-letters",
        "outcomes",
    }


@pytest.mark.parametrize(
    ("name", "example"),
    [
        ("Outcome", Outcome(event="log:1", document="a/b/c", position="p", outcome="applied")),
        ("DeadLetter", DeadLetter(id="1", event="log:1", code="not_json", reason="r", payload=b"x")),
    ],
)
def test_payloads_fit_their_schemas(name: str, example: Any) -> None:
    schemas = asyncapi()["components"]["schemas"]
    Draft202012Validator(schemas[name]).validate(msgspec.to_builtins(example))
