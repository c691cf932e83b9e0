"""What holds for every request: problem details, hosts, origins, groups, request ids, logs."""

from collections.abc import AsyncIterator

import httpx
import pytest
import structlog

from api.options import ApiOptions
from pipeline.embedded.runtime import EmbeddedRuntime
from tests.api.conftest import as_groups, client_of
from tests.api.plant import report

DETAIL = "secret detail"


@pytest.mark.parametrize(
    ("method", "url", "status"),
    [
        ("GET", "/nothing/here", 404),
        ("GET", "/v1/query", 405),
        ("DELETE", "/v1/documents", 405),
        ("POST", "/v1/query", 400),
        ("GET", "/v1/documents/a/b/c", 404),
        ("GET", "/schema/none.json", 404),
    ],
)
async def test_every_error_is_a_problem(client: httpx.AsyncClient, method: str, url: str, status: int) -> None:
    response = await client.request(method, url)
    assert response.status_code == status
    assert response.headers["content-type"].startswith("application/problem+json")
    problem = response.json()
    assert {"type", "title", "status", "detail", "instance"} <= problem.keys() and problem["status"] == status
    assert problem["instance"] == f"urn:shinsen:request:{response.headers['x-request-id']}"
    if status == 405:
        assert response.headers["allow"]


@pytest.mark.parametrize(
    ("body", "pointer", "said"),
    [
        (b"", "", "no body"),
        (b'{"query": "x", "filters": {"fields": {"status": null}}}', "/filters/fields", "null"),
        (b'{"query": "x", "filters": {"fields": {"status": ["a", {}]}}}', "/filters/fields", "object"),
        (b'{"query": "x", "filters": {"source": [1]}}', "/filters/source/0", "int"),
        (b'{"query": "x", "expand": {"y": 1}}', "/expand/y", "unknown field"),
    ],
)
async def test_bad_input_is_pointed_at(client: httpx.AsyncClient, body: bytes, pointer: str, said: str) -> None:
    response = await client.post("/v1/search", content=body, headers={"content-type": "application/json"})
    (error,) = response.json()["errors"]
    assert response.status_code == 400 and error["pointer"] == pointer and said in error["detail"]


async def test_an_unexpected_error_tells_nothing(
    client: httpx.AsyncClient, runtime: EmbeddedRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken() -> None:
        raise RuntimeError(DETAIL)

    monkeypatch.setattr(runtime, "watermarks", broken)
    with structlog.testing.capture_logs() as logs:
        response = await client.get("/v1/freshness")
    assert response.status_code == 500 and "secret" not in response.text
    assert response.headers["content-type"].startswith("application/problem+json")
    assert "secret" not in str(logs) and any(entry.get("error") == "RuntimeError" for entry in logs)


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil", "[::2]", ""])
@pytest.mark.parametrize("url", ["/v1/freshness", "/", "/nothing"])
async def test_foreign_hosts_are_refused(client: httpx.AsyncClient, host: str, url: str) -> None:
    response = await client.get(url, headers={"host": host})
    assert response.status_code == 400 and response.json()["type"].endswith(":unknown-host")


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:8000", "127.0.0.1:1", "[::1]:8000", "LOCALHOST", "localhost."]
)
async def test_own_hosts_are_served(client: httpx.AsyncClient, host: str) -> None:
    assert (await client.get("/health/live", headers={"host": host})).status_code == 200


async def test_pages_of_other_sites_cannot_write(client: httpx.AsyncClient) -> None:
    foreign = await client.post("/v1/events", json=report("R1", "x"), headers={"origin": "http://evil.example"})
    null = await client.post("/v1/events", json=report("R1", "x"), headers={"origin": "null"})
    own = await client.post("/v1/events", json=report("R1", "x"), headers={"origin": "http://127.0.0.1:8000"})
    assert (foreign.status_code, null.status_code, own.status_code) == (403, 403, 202)
    assert "access-control-allow-origin" not in own.headers


async def test_the_request_id_of_the_caller_is_kept_if_it_is_one(client: httpx.AsyncClient) -> None:
    kept = await client.get("/health/live", headers={"x-request-id": "abc-1"})
    replaced = await client.get("/health/live", headers={"x-request-id": "a b\tc"})
    assert kept.headers["x-request-id"] == "abc-1" and replaced.headers["x-request-id"] != "a b\tc"


async def test_logs_hold_neither_paths_nor_contents(client: httpx.AsyncClient) -> None:
    with structlog.testing.capture_logs() as logs:
        await client.post("/v1/query", json={"question": "極秘の質問"}, headers=as_groups("secret-group"))
        await client.get("/v1/documents/plant/reports/secret-key")
    told = str([entry for entry in logs if entry["event"] == "request"])
    assert "/v1/documents/{source}/{collection}/{key}" in told and "'status': 404" in told
    assert "極秘" not in told and "secret" not in told


class TestOffLoopback:
    @pytest.fixture
    async def public(self, runtime: EmbeddedRuntime) -> AsyncIterator[httpx.AsyncClient]:
        options = ApiOptions(loopback=False, anonymous_groups=("staff",), allowed_hosts=("docs.example",))
        async with client_of(runtime, options) as opened:
            opened.headers["host"] = "docs.example"
            yield opened

    async def test_the_groups_header_is_refused(self, public: httpx.AsyncClient, plant: str) -> None:
        assert (await public.get("/v1/documents", headers=as_groups("*"))).status_code == 403
        keys = {d["key"] for d in (await public.get("/v1/documents")).json()["documents"]}
        assert "plant/reports/R1" in keys and "plant/reports/S1" not in keys

    async def test_only_the_configured_host_is_served(self, public: httpx.AsyncClient) -> None:
        assert (await public.get("/health/live")).status_code == 200
        assert (await public.get("/health/live", headers={"host": "localhost"})).status_code == 400


async def test_without_the_header_the_setting_decides(runtime: EmbeddedRuntime, plant: str) -> None:
    async with client_of(runtime, ApiOptions(anonymous_groups=("legal",))) as lawyers:
        keys = {d["key"] for d in (await lawyers.get("/v1/documents")).json()["documents"]}
    assert keys == {"plant/reports/S1"}
