"""Read-only copies of the graph for queries, one per state, removed when unused."""

import asyncio
import contextlib
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path


class Checkpoints:
    """Hands out the checkpoint of the newest state. Hard links make one cost about a millisecond."""

    def __init__(self, folder: Path, backup: Callable[[Path], Awaitable[None]], state: Callable[[], int]) -> None:
        """Take the folder (emptied now), how to write a checkpoint, and the count of writes so far."""
        self._folder, self._backup, self._state = folder, backup, state
        self._users: dict[Path, int] = {}
        self._current: tuple[int, Path] | None = None
        self._made = 0
        self._making = asyncio.Lock()
        shutil.rmtree(folder, ignore_errors=True)

    @contextlib.asynccontextmanager
    async def newest(self) -> AsyncIterator[Path]:
        """Give a checkpoint that holds at least everything written before the call."""
        state = self._state()
        async with self._making:
            if self._current is None or self._current[0] < state:
                self._current = (state, await self._make())
            path = self._current[1]
            self._users[path] += 1
            self._remove_unused()
        try:
            yield path
        finally:
            self._users[path] -= 1
            self._remove_unused()

    async def _make(self) -> Path:
        self._made += 1
        path = self._folder / str(self._made)
        self._folder.mkdir(parents=True, exist_ok=True)
        await self._backup(path)
        self._users[path] = 0
        return path

    def _remove_unused(self) -> None:
        for path, users in list(self._users.items()):
            if users == 0 and (self._current is None or path != self._current[1]):
                del self._users[path]
                shutil.rmtree(path, ignore_errors=True)
