"""CloudEvents 1.0."""

import base64
import json
from typing import Any

import pytest

from pipeline.decoding import decode
from schemas.change_event import RawEvent
from tests.pipeline.decoding.envelopes import NO_MAPPINGS, cloud, mapped, one, refusal


def test_structured() -> None:
    event = one(cloud())
    assert (event.document, event.op, event.positioned) == ("crm/customers/C-1", "upsert", False)
    assert event.version == "2025-07-08T00:00:00.000000Z"
    assert event.columns == {"name": "甲"}


@pytest.mark.parametrize(
    "source", ["crm/customers", "/crm/customers/", "https://h.test:8080/x/crm/customers?y=1#z", "urn:x:crm:customers"]
)
def test_the_last_two_segments_of_the_source(source: str) -> None:
    assert one(cloud(source=source)).document == "crm/customers/C-1"


@pytest.mark.parametrize(("kind", "op"), [("created", "upsert"), ("UPDATED", "upsert"), ("deleted", "delete")])
def test_the_type_says_what_happened(kind: str, op: str) -> None:
    assert one(cloud(type=f"test.{kind}")).op == op


def test_sequence_is_a_position() -> None:
    assert one(cloud(sequence="0000000012")).version == "0000000012"
    assert one(cloud(sequence="9")).position < one(cloud(sequence="0000000012")).position
    assert refusal(cloud(sequence="abc")).code == "bad_position"


def test_data_in_base64_and_key_from_the_mapping() -> None:
    data = base64.b64encode(b'{"name": "x", "id": 7}').decode()
    assert one(cloud(data=..., data_base64=data, subject=...), mapped(key=("id",))).key == "7"


def headers(**changes: str) -> dict[str, str]:
    base = {name: value for name, value in cloud(data=...).items() if value}
    return {f"ce_{name}": value for name, value in {**base, **changes}.items()} | {"content-type": "application/json"}


def test_binary_on_kafka() -> None:
    event = one(b'{"name": "x"}', headers=headers())
    assert (event.key, event.op) == ("C-1", "upsert")


def test_binary_on_http_is_percent_decoded() -> None:
    http = {name.replace("ce_", "ce-"): value for name, value in headers(subject="%E7%94%B2").items()}
    assert one(b"{}", headers=http).key == "甲"


@pytest.mark.parametrize("value", [None, b""])
def test_binary_without_data_is_a_delete(value: bytes | None) -> None:
    (event,) = decode(RawEvent(value=value, headers=headers()), NO_MAPPINGS)
    assert event.op == "delete"


@pytest.mark.parametrize(
    ("changes", "code", "pointer"),
    [
        ({"id": ...}, "wrong_type", "/id"),
        ({"type": ""}, "wrong_type", "/type"),
        ({"source": "customers"}, "wrong_type", "/source"),
        ({"specversion": "0.3"}, "wrong_type", "/specversion"),
        ({"type": "test.archived"}, "unknown_op", "/type"),
        ({"subject": ...}, "missing_key", "/subject"),
        ({"data": ...}, "wrong_type", "/data"),
        ({"data": "text"}, "wrong_type", "/data"),
        ({"datacontenttype": "text/plain"}, "wrong_type", "/datacontenttype"),
        ({"time": ...}, "missing_position", "/occurred_at"),
        ({"time": "yesterday"}, "wrong_type", "/time"),
        ({"data": ..., "data_base64": "%"}, "wrong_type", "/data_base64"),
    ],
)
def test_refusals(changes: dict[str, Any], code: str, pointer: str) -> None:
    error = refusal(cloud(**changes))
    assert (error.code, error.pointer) == (code, pointer)


def test_a_batch_is_not_one_event() -> None:
    assert refusal(json.dumps([cloud()]).encode()).code == "unknown_envelope"
