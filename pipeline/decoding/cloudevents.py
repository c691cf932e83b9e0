"""CloudEvents 1.0 in JSON: structured, or binary with `ce_*` (Kafka) or `ce-*` (HTTP) headers.

https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/spec.md and its JSON, Kafka and HTTP bindings.
`source` ends in source/collection, `subject` is the record's key, `type` ends in what happened;
`sequence` (the extension of that name) is the position, else `time` orders. Binary mode without data
is a delete.
"""

import base64
import binascii
import re
from typing import Any
from urllib.parse import unquote

from pipeline.decoding.build import Told, located, mapped_key
from pipeline.decoding.names import check_key, check_name
from pipeline.decoding.strict_json import parse_json
from pipeline.errors import InvalidEvent
from pipeline.mapping import Mappings
from schemas.change_event import ChangeEvent, RawEvent

_OPS = {"created": "upsert", "updated": "upsert", "upserted": "upsert", "deleted": "delete"}
_HEADER = re.compile(r"ce[_-]([a-z0-9]+)")
_REQUIRED = ("id", "source", "specversion", "type")
_JSON_TYPE = re.compile(r"[^/]+/(?:[^;+]+\+)?json(?:;.*)?", re.IGNORECASE)


def is_binary(headers: dict[str, str]) -> bool:
    """Say whether the headers carry an event in binary mode."""
    return "ce_specversion" in headers or "ce-specversion" in headers


def is_structured(body: dict[str, Any]) -> bool:
    """Say whether a JSON object is an event in structured mode."""
    return "specversion" in body


def decode_structured(
    body: dict[str, Any], raw: RawEvent, mappings: Mappings, epochs: dict[str, int]
) -> list[ChangeEvent]:
    """Decode an event in structured mode."""
    data = body.get("data")
    if "data_base64" in body:
        data = _from_base64(body["data_base64"])
    return _decode({k: v for k, v in body.items() if k not in ("data", "data_base64")}, data, raw, mappings, epochs)


def decode_binary(raw: RawEvent, mappings: Mappings, epochs: dict[str, int]) -> list[ChangeEvent]:
    """Decode an event in binary mode."""
    attributes: dict[str, Any] = {}
    for name, value in raw.headers.items():
        if match := _HEADER.fullmatch(name):
            attributes[match.group(1)] = unquote(value) if name.startswith("ce-") else value
    attributes["datacontenttype"] = raw.headers.get("content-type", "application/json")
    return _decode(attributes, parse_json(raw.value) if raw.value else None, raw, mappings, epochs, binary=True)


def _decode(
    attributes: dict[str, Any],
    data: Any,
    raw: RawEvent,
    mappings: Mappings,
    epochs: dict[str, int],
    *,
    binary: bool = False,
) -> list[ChangeEvent]:
    _check(attributes)
    source, collection = _source(attributes["source"])
    mapping = mappings.of(source, collection)
    columns = _columns(attributes, data)
    op = "delete" if binary and not raw.value else _op(attributes["type"])
    told = Told(
        mapping=mapping,
        envelope="cloudevents",
        lane=raw.lane,
        epoch=epochs.get(source, 0),
        position=attributes.get("sequence"),
        position_pointer="/sequence",
        occurred_at=attributes.get("time"),
        time_pointer="/time",
    )
    subject = attributes.get("subject")
    key = check_key(subject, "/subject") if subject else mapped_key(mapping, columns or {}, "/data")
    if key is None:
        raise InvalidEvent(
            "missing_key",
            "the event has no 'subject', and the mapping names no key column of its data",
            pointer="/subject",
        )
    if op == "delete":
        return [told.event("delete", key, {}, ordered_by=columns or {})]
    if columns is None:
        with located(mapping, key):
            raise InvalidEvent(
                "wrong_type", "the event has no 'data'; a delete has a type that ends in '.deleted'", pointer="/data"
            )
    return [told.event("upsert", key, columns)]


def _check(attributes: dict[str, Any]) -> None:
    for name in _REQUIRED:
        if not isinstance(attributes.get(name), str) or not attributes[name]:
            raise InvalidEvent("wrong_type", f"CloudEvents need the attribute '{name}', a text", pointer=f"/{name}")
    for name in ("subject", "time", "datacontenttype"):
        if attributes.get(name) is not None and not isinstance(attributes[name], str):
            raise InvalidEvent("wrong_type", f"the attribute '{name}' must be a text", pointer=f"/{name}")
    if attributes["specversion"] != "1.0":
        raise InvalidEvent(
            "wrong_type",
            f"CloudEvents {attributes['specversion'][:20]!r} are not known, only 1.0",
            pointer="/specversion",
        )


def _source(uri: str) -> tuple[str, str]:
    """Take the last two segments of the URI-reference's path (of a URN: after the last two colons)."""
    path = re.split(r"[?#]", uri, maxsplit=1)[0]
    path = re.sub(r"^[A-Za-z][A-Za-z0-9+.-]*://[^/]*", "", path)
    segments = [unquote(part) for part in re.split(r"[/:]" if path.lower().startswith("urn:") else "/", path) if part]
    if len(segments) < 2:
        raise InvalidEvent(
            "wrong_type",
            f"'source' {uri[:80]!r} must end in <source>/<collection>, such as crm/customers",
            pointer="/source",
        )
    return check_name(segments[-2], "source", "/source"), check_name(segments[-1], "collection", "/source")


def _op(kind: str) -> str:
    last = kind.rpartition(".")[2].lower()
    if last not in _OPS:
        raise InvalidEvent(
            "unknown_op", f"type {kind[:80]!r} must end in .created, .updated, .upserted or .deleted", pointer="/type"
        )
    return _OPS[last]


def _columns(attributes: dict[str, Any], data: Any) -> dict[str, Any] | None:
    if data is None:
        return None
    content_type = attributes.get("datacontenttype") or "application/json"
    if not _JSON_TYPE.fullmatch(content_type):
        raise InvalidEvent(
            "wrong_type", f"data of type {content_type[:80]!r} is not read, only JSON", pointer="/datacontenttype"
        )
    if not isinstance(data, dict):
        raise InvalidEvent("wrong_type", "'data' must be an object: the record's columns", pointer="/data")
    return data


def _from_base64(text: Any) -> Any:
    try:
        return parse_json(base64.b64decode(text, validate=True))
    except (binascii.Error, TypeError, ValueError) as error:
        raise InvalidEvent("wrong_type", "'data_base64' is not base64", pointer="/data_base64") from error
