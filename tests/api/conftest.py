"""The real embedded runtime with stub models, and a client of the real application in front of it."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from api.app import create_app
from pipeline.embedded.runtime import EmbeddedRuntime
from pipeline.settings import Settings
from pipeline.wiring import open_embedded
from tests.api.plant import CORPUS, Event

Load = Callable[[list[Event]], Awaitable[str]]
MAPPINGS = Path(__file__).parent / "mappings"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings of an embedded start with stub models."""
    given = {"data": tmp_path / "data", "mappings": MAPPINGS, "max_event": 200_000, "max_body": 400_000}
    return Settings.model_validate({**given, "analyzer": "stub", "embedder": "stub", "workers": 1})


@pytest.fixture
async def runtime(settings: Settings) -> AsyncIterator[EmbeddedRuntime]:
    """A running pipeline."""
    async with open_embedded(settings) as opened:
        yield opened


@pytest.fixture
async def client(runtime: EmbeddedRuntime, settings: Settings) -> AsyncIterator[httpx.AsyncClient]:
    """A client on the loopback."""
    async with client_of(runtime, settings) as opened:
        yield opened


def client_of(runtime: EmbeddedRuntime, settings: Any) -> httpx.AsyncClient:
    """Return a client of an application with these settings."""
    transport = httpx.ASGITransport(create_app(runtime, settings), raise_app_exceptions=False)  # type: ignore[arg-type]
    return httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000", timeout=60)


@pytest.fixture
def load(client: httpx.AsyncClient) -> Load:
    """Post events and wait until all are applied; return the token."""

    async def post(events: list[Event]) -> str:
        response = await client.post("/v1/events?wait=applied&timeout=30s", json=events)
        assert response.status_code == 200, response.text
        token: str = response.json()["token"]
        return token

    return post


@pytest.fixture
async def plant(load: Load) -> str:
    """The corpus, loaded; its token."""
    return await load(CORPUS)


def as_groups(*groups: str) -> dict[str, str]:
    """Return the header of an asker with these groups."""
    return {"X-Shinsen-Groups": ",".join(groups)}
