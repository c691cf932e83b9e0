"""The sweep over real stores: what it asks for, when, and what it leaves alone."""

from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

import pytest

from pipeline.agents import sweeping
from pipeline.agents.sweeping import EVERY_S, WHOLE_EVERY_S, Sweep
from pipeline.agents.verifying import Verification
from pipeline.apply import Applier
from pipeline.embedded.runtime import EmbeddedRuntime
from pipeline.ports.generations import Generation
from pipeline.writer_marks import LEASE_S
from tests.differential.events import history
from tests.differential.running import running
from tests.pipeline.test_appliers import MACHINE, RENAMED, REPORT, Writers, advance


class Watched:
    """A sweep with a clock of its own, which writes down what it asks for."""

    def __init__(self, runtime: EmbeddedRuntime, applier: Applier, lag: int) -> None:
        self.asked: list[list[str]] = []
        self.now, self.lag = 0.0, lag
        own: Any = applier
        indexes = own._state, own._chunks, own._graph
        verification = Verification(applier.generation, *indexes, seconds=lambda: self.now)
        self.sweep = Sweep(runtime.state, applier, verification, self._send, self._lag, seconds=lambda: self.now)

    async def _send(self, documents: Iterable[str]) -> None:
        self.asked.append(list(documents))

    async def _lag(self) -> int:
        return self.lag

    async def looks(self, seconds: float) -> list[list[str]]:
        """Let time pass; return what was asked for in it."""
        before, end = len(self.asked), self.now + seconds
        while self.now < end:
            self.now += EVERY_S
            await self.sweep.sweep()
        return self.asked[before:]


@pytest.fixture
async def runtime(tmp_path: Path) -> AsyncIterator[EmbeddedRuntime]:
    async with running(tmp_path) as opened:
        yield opened


async def published(runtime: EmbeddedRuntime, writers: Writers, applier: Applier) -> tuple[str, str]:
    """Publish a ledger entry and a report that names it; return their documents."""
    documents = [await advance(runtime, n, event) for n, event in enumerate(history([MACHINE, REPORT]), 1)]
    await writers.to_the_end(applier, await writers.prepared(documents))
    machine, report = documents
    return machine, report


async def left_by_a_dead_writer(runtime: EmbeddedRuntime, generation: str, document: str) -> None:
    await runtime.state.begin(generation, [document], "dead", 0)
    state: Any = runtime.state
    await state._database.write(lambda tx: tx.execute("UPDATE staging SET since = '2000'"))


async def test_under_load_that_never_ends_a_dead_writers_document_is_asked_for(runtime: EmbeddedRuntime) -> None:
    writers = Writers(runtime)
    applier = writers.another("own")
    _, report = await published(runtime, writers, applier)
    watched = Watched(runtime, applier, lag=7)
    assert await watched.looks(60) == []
    await left_by_a_dead_writer(runtime, applier.generation, report)
    assert await watched.looks(2 * LEASE_S) == [[report]]


async def test_under_load_that_never_ends_names_are_looked_up_for_a_dead_writer(runtime: EmbeddedRuntime) -> None:
    writers = Writers(runtime)
    applier = writers.another("own")
    machine, report = await published(runtime, writers, applier)
    *_, renamed = history([MACHINE, REPORT, RENAMED])
    await advance(runtime, 3, renamed)
    dead = writers.another("dead")

    async def nothing(changes: object) -> list[str]:
        return []

    dead.look_up = nothing  # type: ignore[method-assign]
    await dead.publish(await writers.prepared([machine]))
    watched = Watched(runtime, applier, lag=7)
    found = await watched.looks(2 * LEASE_S)
    assert report in {document for asked in found for document in asked}
    assert await runtime.state.unlooked(applier.generation) == []


async def test_what_is_not_done_is_asked_for_again_less_and_less_often(runtime: EmbeddedRuntime) -> None:
    writers = Writers(runtime)
    applier = writers.another("own")
    _, report = await published(runtime, writers, applier)
    await runtime.state.mark_relinks(applier.generation, [report])
    watched = Watched(runtime, applier, lag=0)
    first = await watched.looks(30)
    assert 2 <= first.count([report]) <= 4
    assert len(await watched.looks(3600)) <= 3600 / WHOLE_EVERY_S * 2 + 5


async def test_a_rebuild_under_way_is_not_filled_with_everything(runtime: EmbeddedRuntime) -> None:
    writers = Writers(runtime)
    await published(runtime, writers, writers.another("own"))
    await runtime.state.create_generation(Generation(name="trial", created_at="2025-07-08T00:00:00Z"))
    trial = writers.another("trial")
    trial.generation = "trial"
    watched = Watched(runtime, trial, lag=0)
    assert await watched.looks(30) == []


async def test_what_is_behind_is_asked_for_a_page_at_a_time(
    runtime: EmbeddedRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeping, "PAGE", 1)
    documents = [await advance(runtime, n, event) for n, event in enumerate(history([MACHINE, REPORT]), 1)]
    applier = Writers(runtime).another("own")
    applier.announces = False
    watched = Watched(runtime, applier, lag=0)
    assert await watched.looks(EVERY_S) == [[one] for one in sorted(documents)]
