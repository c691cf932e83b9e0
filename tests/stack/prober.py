"""Asks all the while: what must always be found is found, in every answer, or the test hears of it."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import httpx

PAUSE_S = 0.02


class Prober:
    """Searches for documents by a word that only they hold, one after the other, until the block ends."""

    def __init__(self, client: httpx.AsyncClient, words: Mapping[str, str]) -> None:
        """Document to word."""
        self._client, self._words = client, words
        self.asked = 0
        self.wrong: list[str] = []

    @asynccontextmanager
    async def asking(self) -> AsyncIterator["Prober"]:
        """Ask in the background."""
        task = asyncio.create_task(self._forever())
        try:
            yield self
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def another_round(self) -> None:
        """Return when every document was asked for once more: by then each was asked for as things stand now."""
        until = self.asked + len(self._words) + 1  # the question under way may have begun before
        while self.asked < until:  # noqa: ASYNC110 - a counter
            await asyncio.sleep(0.05)

    async def _forever(self) -> None:
        while True:
            for document, word in self._words.items():
                try:
                    await self._ask(document, word)
                except Exception as error:  # noqa: BLE001 - whatever it is, the test must hear of it
                    self.wrong.append(f"{document}: {type(error).__name__}: {error}")
                self.asked += 1
                await asyncio.sleep(PAUSE_S)

    async def _ask(self, document: str, word: str) -> None:
        response = await self._client.post("/v1/search", json={"query": word, "top_k": 5})
        if response.status_code != 200:
            self.wrong.append(f"{document}: {response.status_code} {response.text[:200]}")
            return
        found = [hit["document"]["key"] for hit in response.json()["hits"]]
        if document not in found:
            self.wrong.append(f"{document} is missing, found {found}")
