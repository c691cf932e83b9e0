"""The embedded profile with the real analyzer and no vectors, over texts that are searchable and never need more."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio

from pipeline.settings import Settings
from pipeline.wiring import open_embedded
from tests.api.conftest import client_of
from tests.language.codes import events


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a server that holds the hard set of identifiers."""
    async with search_only(tmp_path_factory.mktemp("codes"), events()) as opened:
        yield opened


class search_only:
    """Opens the embedded profile over a folder, posts events, and waits until their text is searchable."""

    def __init__(self, folder: Path, posted: list[dict[str, Any]], **settings: Any) -> None:
        given = {"data": folder, "analyzer": "ginza", "embedder": "none", "workers": 1, **settings}
        self._settings, self._posted = Settings.model_validate(given), posted
        self._runtime = open_embedded(self._settings)

    async def __aenter__(self) -> httpx.AsyncClient:
        self.runtime = runtime = await self._runtime.__aenter__()
        self._client = await client_of(runtime, self._settings).__aenter__()
        if self._posted:
            response = await self._client.post("/v1/events", json=self._posted)
            assert response.status_code == 202, response.text
        while (await runtime.watermarks()).pending_text:  # noqa: ASYNC110 - a counter
            await asyncio.sleep(0.05)
        return self._client

    async def __aexit__(self, *error: Any) -> None:
        await self._client.__aexit__(*error)
        await self._runtime.__aexit__(*error)
