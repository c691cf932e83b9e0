"""Bodies of events that are built to cost much."""

import json
import time
import tracemalloc

import httpx
import pytest

from api.http.event_bodies import split_body
from pipeline.errors import TooLarge
from tests.api.plant import report

JSON = {"content-type": "application/json"}
NDJSON = {"content-type": "application/x-ndjson"}


@pytest.mark.parametrize(("body", "headers"), [(b"[" + b"1," * 4_000_000 + b"1]", JSON), (b"1\n" * 4_000_000, NDJSON)])
def test_millions_of_items_are_refused_before_they_are_made(body: bytes, headers: dict[str, str]) -> None:
    tracemalloc.start()
    started = time.process_time()
    with pytest.raises(TooLarge, match="at most 10000"):
        split_body(body, headers, "live", 10_000)
    assert time.process_time() - started < 2
    assert tracemalloc.get_traced_memory()[1] < 20_000_000
    tracemalloc.stop()


def test_commas_within_events_count_for_nothing() -> None:
    events = [{"text": 'a,"b"\\,' * 200, "list": [[1, 2], {"a": [3, 4]}] * 50} for _ in range(3)]
    found = split_body(json.dumps(events).encode(), JSON, "live", 3)
    assert [json.loads(event.value or b"") for event in found.events] == events
    with pytest.raises(TooLarge):
        split_body(json.dumps(events).encode(), JSON, "live", 2)


@pytest.mark.parametrize("body", [b'["\\"\\"\\"' * 50_000 + b"," * 200_000, b"[" + b"," * 900_000, b"[" * 900_000])
def test_a_broken_array_is_one_piece(body: bytes) -> None:
    started = time.process_time()
    try:
        assert split_body(body, JSON, "live", 1_000_000).batch is False
    finally:
        assert time.process_time() - started < 2


def test_ndjson_keeps_order_over_line_ends() -> None:
    found = split_body(b'\xef\xbb\xbf{"a":1}\r\n\r\n  \n{"b":2}\r{"c":3}', NDJSON, "live", 3)
    assert [event.value for event in found.events] == [b'\xef\xbb\xbf{"a":1}', b'{"b":2}', b'{"c":3}']


async def test_a_compressed_body_is_refused_by_name(client: httpx.AsyncClient) -> None:
    response = await client.post("/v1/events", json=report("R1", "本文。"), headers={"content-encoding": "gzip"})
    assert response.status_code == 415
    assert "gzip" in response.json()["detail"]
    assert (await client.get("/v1/dead-letters")).json()["dead_letters"] == []
