"""Running a history through the real embedded runtime with stub models."""

import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from pipeline.decoding import decode
from pipeline.embedded.runtime import EmbeddedRuntime
from pipeline.errors import InvalidEvent
from pipeline.settings import Settings
from pipeline.wiring import Configuration, open_embedded
from schemas.change_event import RawEvent

MAPPINGS = Path(__file__).parent / "mappings"
MAX_EVENT = 4096
OUTCOMES = ("applied", "duplicate", "superseded", "dead_letter")


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder in memory where there is one: thousands of commits, and no power loss to survive here."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as name:
        yield Path(name)


@asynccontextmanager
async def running(folder: Path, **more: Any) -> AsyncIterator[EmbeddedRuntime]:
    """An embedded runtime over a data folder."""
    settings = Settings(
        data=folder, mappings=MAPPINGS, analyzer="stub", embedder="stub", workers=1, max_event=MAX_EVENT, **more
    )
    # Read once: the files are the same in each of a thousand starts.
    with patch("pipeline.wiring.Configuration", _configuration):
        opened = open_embedded(settings)
        runtime = await opened.__aenter__()
    try:
        yield runtime
    finally:
        await opened.__aexit__(None, None, None)


_CONFIGURATIONS: list[Configuration] = []


def _configuration(settings: Settings) -> Configuration:
    if not _CONFIGURATIONS:
        _CONFIGURATIONS.append(Configuration(settings))
    return _CONFIGURATIONS[0]


async def one_by_one(folder: Path, events: Sequence[RawEvent]) -> dict[str, str]:
    """Submit in order, wait for each, return the digest."""
    async with running(folder) as runtime:
        for event in events:
            await runtime.submit([event])
            await runtime.quiet(30)
        await assert_counts(runtime, events)
        return await runtime.digest()


async def assert_counts(runtime: EmbeddedRuntime, submitted: Sequence[RawEvent]) -> None:
    """After quiet, each event ended in exactly one outcome: those logged, and those refused at the door."""
    await runtime.quiet(30)
    status = await runtime.status()
    counts = status["counts"]
    ends = await runtime.state.outcomes([f"log:{n}" for n in range(1, status["events"]["logged"] + 1)])
    assert len(ends) == status["events"]["logged"]
    assert status["events"]["logged"] + _refused(runtime, submitted) == sum(counts[f"outcome.{n}"] for n in OUTCOMES)
    assert counts["uncollected"] == counts["text"] == counts["relinks"] == 0


def _refused(runtime: EmbeddedRuntime, submitted: Sequence[RawEvent]) -> int:
    """How many different events are refused at the door: the same bytes are one event there."""
    refused = set()
    for event in submitted:
        try:
            decode(event, runtime.mappings, max_bytes=MAX_EVENT)
        except InvalidEvent:
            refused.add(event.value)
    return len(refused)


def copy_of(path: Path, to: Path) -> None:
    """Copy a file or a folder, as an administrator would from a backup; nothing there stays nothing."""
    if path.is_dir():
        shutil.copytree(path, to)
    elif path.exists():
        shutil.copy2(path, to)


def put_back(copy: Path, path: Path) -> None:
    """Replace a file (with its log) or a folder by an older copy; without one, it is gone."""
    for old in (path, path.with_name(path.name + "-wal"), path.with_name(path.name + "-shm")):
        if old.is_dir():
            shutil.rmtree(old)
        else:
            old.unlink(missing_ok=True)
    copy_of(copy, path)
