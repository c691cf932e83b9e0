"""Envelopes for the decoding tests, built from parts."""

import json
from typing import Any

from pipeline.decoding import decode
from pipeline.errors import InvalidEvent
from pipeline.mapping import Mappings
from schemas.change_event import ChangeEvent, RawEvent
from schemas.mapping import Mapping

NO_MAPPINGS = Mappings()


def mapped(**parts: Any) -> Mappings:
    return Mappings([Mapping(**{"source": "crm", "collection": "customers", "title": "{name}", "body": (), **parts})])


def raw(body: Any, **transport: Any) -> RawEvent:
    return RawEvent(value=body if isinstance(body, bytes) else json.dumps(body).encode(), **transport)


def read(body: Any, mappings: Mappings = NO_MAPPINGS, **transport: Any) -> list[ChangeEvent]:
    return decode(raw(body, **transport), mappings)


def one(body: Any, mappings: Mappings = NO_MAPPINGS, **transport: Any) -> ChangeEvent:
    (event,) = read(body, mappings, **transport)
    return event


def refusal(body: Any, mappings: Mappings = NO_MAPPINGS, **transport: Any) -> InvalidEvent:
    try:
        events = read(body, mappings, **transport)
    except InvalidEvent as error:
        return error
    raise AssertionError(f"was taken: {events}")


def native(**changes: Any) -> dict[str, Any]:
    body = {"source": "crm", "collection": "customers", "key": "C-1", "position": 5, "record": {"title": "甲"}}
    return {name: value for name, value in {**body, **changes}.items() if value is not ...}


def cloud(**changes: Any) -> dict[str, Any]:
    body = {
        "specversion": "1.0",
        "id": "1",
        "source": "https://example.test/crm/customers",
        "type": "test.customer.updated",
        "subject": "C-1",
        "time": "2025-07-08T09:00:00+09:00",
        "data": {"name": "甲"},
    }
    return {name: value for name, value in {**body, **changes}.items() if value is not ...}


def debezium(op: str = "u", *, source: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    block = {
        "connector": "postgresql",
        "name": "crm",
        "ts_ms": 1751932800000,
        "snapshot": "false",
        "schema": "public",
        "table": "customers",
        "lsn": 23814240,
        **(source or {}),
    }
    return {"before": None, "after": {"id": "C-1", "name": "甲"}, "source": block, "op": op, **changes}


KEY = json.dumps({"id": "C-1"}).encode()
