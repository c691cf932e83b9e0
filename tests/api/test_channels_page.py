"""The AsyncAPI page and the files behind it."""

import json

import httpx
import jsonschema  # type: ignore[import-untyped]

from schemas.json_schema import asyncapi, event_schema

EVENT = {"source": "erp", "collection": "parts", "key": "1", "position": 1, "record": {"title": "題", "body": "本文"}}


async def test_files_are_what_the_types_say(client: httpx.AsyncClient) -> None:
    assert (await client.get("/schema/asyncapi.json")).json() == json.loads(json.dumps(asyncapi()))
    schema = (await client.get("/schema/event.json")).json()
    assert schema == json.loads(json.dumps(event_schema()))
    jsonschema.validate(EVENT, schema)


async def test_the_page_names_channels_and_members(client: httpx.AsyncClient) -> None:
    page = await client.get("/schema/channels")
    assert page.status_code == 200 and page.headers["content-type"].startswith("text/html")
    for word in ("/v1/events", "dead-letters", "outcomes", "occurred_at", "position"):
        assert word in page.text
    assert "/schema/channels" in (await client.get("/schema")).text
