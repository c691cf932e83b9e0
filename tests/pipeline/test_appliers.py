"""Two appliers of one generation at once, one of them stopped at each place in between: what stands is the same."""

import asyncio
import functools
from collections.abc import Awaitable, Sequence
from pathlib import Path
from typing import Any

import apsw
import pytest

from pipeline.apply import Applier
from pipeline.decoding import decode
from pipeline.digest import digest
from pipeline.embedded import EmbeddedRuntime
from pipeline.prepare import Prepared
from pipeline.reconcile import Arrived, Reconciler
from schemas.change_event import RawEvent
from tests.differential.events import Change, history
from tests.differential.running import one_by_one, running, scratch

ALL, FEW = ["all-staff"], ["maintenance"]
MACHINE = Change("machine", "F-17", ("赤い荷役車", "フォークリフト", ALL, "1.50"))
RENAMED = Change("machine", "F-17", ("三号機", "フォークリフト", ALL, "1.50"))
REPORT = Change("report", "r1", (("赤い荷役車が構内で停止した。", "三号機のブレーキが鳴った。"), ALL, "田中"))
NARROWED = Change("report", "r1", (("赤い荷役車が構内で停止した。", "三号機のブレーキが鳴った。"), FEW, "田中"))
REWRITTEN = Change("report", "r1", (("三号機のブレーキが鳴った。", "荷を降ろした。"), ALL, "田中"))
GONE = Change("report_gone", "r1")

PAIRS = {
    "narrowed": ([MACHINE, REPORT], NARROWED),
    "rewritten": ([MACHINE, REPORT], REWRITTEN),
    "deleted": ([MACHINE, REPORT], GONE),
    "linked to a new name": ([REPORT], MACHINE),
    "linked to other names": ([MACHINE, REPORT], RENAMED),
    "who declares a name is renamed": ([REPORT, MACHINE], RENAMED),
}
"""What the slow applier has taken (the last of it), and what the fast one publishes meanwhile."""
PLACES = [
    ("state", "begin"),
    ("chunks", "stage"),
    ("graph", "stage"),
    ("state", "commit_declared"),
    ("chunks", "collect"),
    ("graph", "collect"),
    ("state", "finish"),
]


class Killed(BaseException):
    """Ends a writer as a kill would: nobody handles it."""


class Stopped:
    """Stands before one call of a store, and lets it through when told; the writer may end after it."""

    def __init__(self, real: Any, method: str, killed: bool) -> None:
        self._real, self._method, self._killed = real, method, killed
        self.reached, self.go = asyncio.Event(), asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        own = getattr(self._real, name)
        if name != self._method:
            return own

        async def wait(*given: Any, **named: Any) -> Any:
            self.reached.set()
            await self.go.wait()
            result = await own(*given, **named)
            if self._killed:
                raise Killed
            return result

        return wait


class Writers:
    """Appliers over the stores of a runtime that has nothing to do."""

    def __init__(self, runtime: EmbeddedRuntime) -> None:
        self.runtime = runtime
        builder: Any = runtime._generation.builder
        self._own, self._preparer = builder._applier, builder._preparer

    def another(self, name: str, **replaced: Any) -> Applier:
        own = self._own
        stores = {"state": own._state, "chunks": own._chunks, "graph": own._graph} | replaced
        return Applier(
            own.generation,
            stores["state"],
            stores["chunks"],
            stores["graph"],
            own._text_facts,
            vector_model=own._vector_model,
            announces=True,
            writer=name,
            clock=own._clock,
        )

    async def prepared(self, documents: Sequence[str]) -> list[Prepared]:
        records = await self.runtime.state.records(documents)
        prepared: list[Prepared] = await self._preparer.light(list(records.values()), "full", "live")
        return [await self._preparer.heavy(one, "live") for one in prepared]

    async def to_the_end(self, applier: Applier, batch: Sequence[Prepared]) -> None:
        """Publish, and do what that asks for."""
        for _ in range(20):
            published = await applier.publish(batch)
            todo = sorted({*published.again, *published.relinks})
            if not todo:
                return
            batch = await self.prepared(todo)
        raise AssertionError(f"no end: {todo}")


async def advance(runtime: EmbeddedRuntime, number: int, event: RawEvent) -> str:
    """Bring an event into the records only; return its document."""
    (change,) = decode(event, runtime.mappings)
    done = await Reconciler(runtime.state).reconcile([Arrived(f"log:{number}", change)])
    return done.advanced[0].document


@functools.cache
def expected(pair: str) -> dict[str, str]:
    before, meanwhile = PAIRS[pair]

    async def run() -> dict[str, str]:
        with scratch() as folder:
            return await one_by_one(folder, history([*before, meanwhile]))

    return asyncio.run(run())


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("place", PLACES, ids=[".".join(place) for place in PLACES])
@pytest.mark.parametrize("ends", ["goes on", "is killed"])
def test_a_late_writer_leaves_what_one_writer_would(place: tuple[str, str], pair: str, ends: str) -> None:
    assert asyncio.run(late(place, pair, killed=ends == "is killed")) == expected(pair)


async def late(place: tuple[str, str], pair: str, *, killed: bool) -> dict[str, str]:
    before, meanwhile = PAIRS[pair]
    *first, slow_event, fast_event = history([*before, meanwhile])
    with scratch() as folder:
        async with running(folder) as runtime:
            writers = Writers(runtime)
            fast = writers.another("fast")
            for number, event in enumerate(first, 1):
                await writers.to_the_end(fast, await writers.prepared([await advance(runtime, number, event)]))
            part, method = place
            stores = {"state": runtime.state, "chunks": fast._chunks, "graph": fast._graph}
            stopped = Stopped(stores[part], method, killed)
            slow = writers.another("slow", **{part: stopped})
            document = await advance(runtime, len(first) + 1, slow_event)
            task = asyncio.create_task(until_killed(writers.to_the_end(slow, await writers.prepared([document]))))
            await stopped.reached.wait()
            newer = await advance(runtime, len(first) + 2, fast_event)
            await writers.to_the_end(fast, await writers.prepared([newer]))
            stopped.go.set()
            assert await task == killed
            await swept(runtime, writers, fast)
            return await digest_of(runtime)


async def until_killed(work: Awaitable[None]) -> bool:
    try:
        await work
    except Killed:
        return True
    return False


async def swept(runtime: EmbeddedRuntime, writers: Writers, applier: Applier) -> None:
    """Do what the sweep does, as if the lease of every mark were over."""
    generation = applier.generation
    for _ in range(20):
        await applier.look_up(await runtime.state.unlooked(generation))
        left = await runtime.state.leftovers(generation, stale="9", announces=True)
        if not left:
            break
        # A killed writer's mark goes when it is older than the lease: here, at once.
        applier._clock = lambda: "2099-01-01T00:00:00.000000Z"
        await writers.to_the_end(applier, await writers.prepared(left))
    assert await runtime.state.pending(generation) == []


async def digest_of(runtime: EmbeddedRuntime) -> dict[str, str]:
    async with runtime.live() as indexes:
        return await digest(runtime.state, indexes.generation, indexes.chunks, indexes.graph)


async def test_a_data_folder_from_before_there_were_several_writers_still_opens(tmp_path: Path) -> None:
    events = history([MACHINE, REPORT])
    async with running(tmp_path) as runtime:
        await runtime.submit(events[:1])
        await runtime.quiet(30)
    connection = apsw.Connection(str(tmp_path / "state.db"))
    for table in ("staging", "name_changes", "name_counters"):
        connection.execute(f"DROP TABLE {table}")
    for index in ("records_unannounced", "manifests_unfinished"):
        connection.execute(f"DROP INDEX {index}")
    connection.close()
    async with running(tmp_path) as runtime:
        await runtime.submit(events[1:])
        found = await runtime.digest()
    with scratch() as folder:
        assert found == await one_by_one(folder, events)
