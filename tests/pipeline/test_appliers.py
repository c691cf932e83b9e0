"""Two appliers of one generation at once, one of them stopped at each place in between: what stands is the same."""

import asyncio
import functools
from collections.abc import Awaitable, Sequence
from pathlib import Path
from typing import Any

import apsw
import pytest

from pipeline import writer_marks
from pipeline.apply import Applier
from pipeline.decoding import decode
from pipeline.digest import digest
from pipeline.embedded.runtime import EmbeddedRuntime
from pipeline.errors import BackendUnavailable
from pipeline.prepare import Prepared
from pipeline.reconcile import Arrived, Reconciler
from pipeline.writer_marks import LEASE_S
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


OVER = -60.0
"""As a lease: whoever left a mark is taken for dead at once."""


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


class StoppedAfter(Stopped):
    """Stands after the call."""

    def __init__(self, real: Any, method: str) -> None:
        super().__init__(real, method, killed=False)

    def __getattr__(self, name: str) -> Any:
        own = getattr(self._real, name)
        if name != self._method:
            return own

        async def wait(*given: Any, **named: Any) -> Any:
            result = await own(*given, **named)
            self.reached.set()
            await self.go.wait()
            return result

        return wait


class KilledAfter:
    """Ends the writer as soon as one call of a store has been answered."""

    def __init__(self, real: Any, method: str) -> None:
        self._real, self._method = real, method

    def __getattr__(self, name: str) -> Any:
        own = getattr(self._real, name)
        if name != self._method:
            return own

        async def end(*given: Any, **named: Any) -> Any:
            await own(*given, **named)
            raise Killed

        return end


class Away:
    """A store that does one thing, and then seems to be away, until `back`."""

    def __init__(self, real: Any, method: str) -> None:
        self._real, self._method, self.back = real, method, False

    def __getattr__(self, name: str) -> Any:
        own = getattr(self._real, name)
        if name != self._method:
            return own

        async def fail(*given: Any, **named: Any) -> Any:
            result = await own(*given, **named)
            if not self.back:
                raise BackendUnavailable("the connection was lost after the request")
            return result

        return fail


class Late:
    """A store that carries a request out when nobody waits for it: the first call of a method hangs or fails."""

    def __init__(self, real: Any, method: str, fails: bool) -> None:
        self._real, self._method, self._fails = real, method, fails
        self.reached = asyncio.Event()
        self._given: Any = None

    def __getattr__(self, name: str) -> Any:
        own = getattr(self._real, name)
        if name != self._method or self._given is not None:
            return own

        async def hang(*given: Any, **named: Any) -> None:
            self._given = given, named
            self.reached.set()
            if self._fails:
                raise BackendUnavailable("no answer in time")
            await asyncio.Event().wait()

        return hang

    async def carry_out(self) -> None:
        given, named = self._given
        await getattr(self._real, self._method)(*given, **named)


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


class Scene:
    """A slow writer has staged an old version and stands; the fast one has published a newer one to the end."""

    def __init__(self, runtime: EmbeddedRuntime, pair: str) -> None:
        self.runtime, self.writers = runtime, Writers(runtime)
        self.fast = self.writers.another("fast")
        before, meanwhile = PAIRS[pair]
        *self._first, self._slow, self._fast = history([*before, meanwhile])

    async def old(self) -> list[Prepared]:
        """Publish what comes before; return what the slow writer has taken."""
        for number, event in enumerate(self._first, 1):
            document = await advance(self.runtime, number, event)
            await self.writers.to_the_end(self.fast, await self.writers.prepared([document]))
        return await self.writers.prepared([await advance(self.runtime, len(self._first) + 1, self._slow)])

    async def newer(self, applier: Applier | None = None) -> None:
        document = await advance(self.runtime, len(self._first) + 2, self._fast)
        await self.writers.to_the_end(applier or self.fast, await self.writers.prepared([document]))

    async def end(self) -> dict[str, str]:
        await swept(self.runtime, self.writers, self.fast)
        return await digest_of(self.runtime)


SHARED = ["narrowed", "rewritten", "deleted"]
"""Pairs whose versions share chunks."""


@pytest.mark.parametrize("pair", SHARED)
async def test_who_lost_the_commit_and_is_killed_before_it_publishes_again_has_left_its_mark(
    pair: str, tmp_path: Path
) -> None:
    async with running(tmp_path) as runtime:
        scene = Scene(runtime, pair)
        old = await scene.old()
        chunks = Stopped(scene.fast._chunks, "stage", False)
        slow = scene.writers.another("slow", chunks=chunks, state=KilledAfter(runtime.state, "finish"))
        task = asyncio.create_task(until_killed(scene.writers.to_the_end(slow, old)))
        await chunks.reached.wait()
        await scene.newer()
        chunks.go.set()
        assert await task
        assert await scene.end() == await asyncio.to_thread(expected, pair)


@pytest.mark.parametrize("pair", SHARED)
async def test_an_old_message_that_comes_again_does_not_take_a_dead_writers_mark_off(pair: str, tmp_path: Path) -> None:
    async with running(tmp_path) as runtime:
        scene = Scene(runtime, pair)
        old = await scene.old()
        chunks = Stopped(scene.fast._chunks, "stage", True)
        slow = scene.writers.another("slow", chunks=chunks)
        task = asyncio.create_task(until_killed(scene.writers.to_the_end(slow, old)))
        await chunks.reached.wait()
        await scene.newer()
        chunks.go.set()
        assert await task
        third = scene.writers.another("third")
        third._marks._lease_s = OVER
        await scene.writers.to_the_end(third, old)
        assert await scene.end() == await asyncio.to_thread(expected, pair)


@pytest.mark.parametrize("pair", SHARED)
async def test_an_old_message_again_after_a_store_was_away_is_published_as_its_record_says(
    pair: str, tmp_path: Path
) -> None:
    """The first try staged it and failed; at the second a newer version stands, so that it is left out."""
    async with running(tmp_path) as runtime:
        scene = Scene(runtime, pair)
        old = await scene.old()
        stopped = Stopped(scene.fast._chunks, "stage", False)
        chunks = Away(stopped, "stage")
        slow = scene.writers.another("slow", chunks=chunks)
        task = asyncio.create_task(slow.publish(old))
        await stopped.reached.wait()
        await scene.newer()
        stopped.go.set()
        with pytest.raises(BackendUnavailable):
            await task
        chunks.back = True
        await scene.writers.to_the_end(slow, old)
        assert await digest_of(runtime) == await asyncio.to_thread(expected, pair)
        assert await runtime.state.leftovers(slow.generation, older_s=LEASE_S, announces=True) == []
        assert await scene.end() == await asyncio.to_thread(expected, pair)
        assert await runtime.state.leftovers(slow.generation, older_s=OVER, announces=True) == []


async def test_an_old_message_that_comes_again_does_not_take_a_relinking_mark_off(tmp_path: Path) -> None:
    """A name in the document has changed; before anybody links it again, its first version is delivered again."""
    changes = [MACHINE, REPORT, NARROWED, RENAMED]
    async with running(tmp_path) as runtime:
        writers = Writers(runtime)
        first = writers.another("first")
        machine, report, narrowed, renamed = history(changes)
        await writers.to_the_end(first, await writers.prepared([await advance(runtime, 1, machine)]))
        old = await writers.prepared([await advance(runtime, 2, report)])
        await writers.to_the_end(first, old)
        await writers.to_the_end(first, await writers.prepared([await advance(runtime, 3, narrowed)]))
        published = await first.publish(await writers.prepared([await advance(runtime, 4, renamed)]))
        assert published.relinks, "the first writer ends here, and links nobody again"
        await writers.to_the_end(writers.another("second"), old)
        await swept(runtime, writers, writers.another("third"))
        found = await digest_of(runtime)
    with scratch() as folder:
        assert found == await one_by_one(folder, history(changes))


@pytest.mark.parametrize("part", ["chunks", "graph"])
async def test_who_stood_still_longer_than_the_lease_marks_again_before_it_collects(part: str, tmp_path: Path) -> None:
    """Its mark was taken off for a dead writer's. It removes what the newer version has, and is killed."""
    async with running(tmp_path) as runtime:
        scene = Scene(runtime, "rewritten")
        old = await scene.old()
        committed = StoppedAfter(runtime.state, "commit_declared")
        real: Any = scene.fast._chunks if part == "chunks" else scene.fast._graph
        slow = scene.writers.another("slow", state=committed, **{part: KilledAfter(real, "collect")})
        task = asyncio.create_task(until_killed(scene.writers.to_the_end(slow, old)))
        await committed.reached.wait()
        scene.fast._marks._lease_s = OVER
        await scene.newer()
        slow._marks._at = float("-inf")
        committed.go.set()
        assert await task
        assert await scene.end() == await asyncio.to_thread(expected, "rewritten")


WRITES = [("chunks", "stage"), ("graph", "stage"), ("chunks", "collect"), ("graph", "collect")]


@pytest.mark.parametrize("pair", SHARED)
@pytest.mark.parametrize("place", WRITES, ids=[".".join(place) for place in WRITES])
@pytest.mark.parametrize("cut", ["cut off", "not answered"])
async def test_a_request_that_is_carried_out_after_its_writer_gave_it_up(
    place: tuple[str, str], pair: str, cut: str, tmp_path: Path
) -> None:
    """The same writer publishes a newer version to the end before the store gets to the older request."""
    async with running(tmp_path) as runtime:
        scene = Scene(runtime, pair)
        old = await scene.old()
        part, method = place
        real: Any = scene.fast._chunks if part == "chunks" else scene.fast._graph
        late = Late(real, method, fails=cut == "not answered")
        slow = scene.writers.another("slow", **{part: late})
        task = asyncio.create_task(slow.publish(old))
        await late.reached.wait()
        if cut == "cut off":
            task.cancel()
        with pytest.raises(asyncio.CancelledError if cut == "cut off" else BackendUnavailable):
            await task
        await scene.newer(slow)
        await late.carry_out()
        assert await scene.end() == await asyncio.to_thread(expected, pair)


@pytest.mark.parametrize("place", WRITES[2:], ids=[".".join(place) for place in WRITES[2:]])
async def test_who_stood_still_longer_than_the_lease_before_a_request_and_is_cut_off_has_left_its_mark(
    place: tuple[str, str], tmp_path: Path
) -> None:
    """As a worker that comes back and has lost its partitions: its mark was taken off for a dead writer's."""
    async with running(tmp_path) as runtime:
        scene = Scene(runtime, "rewritten")
        old = await scene.old()
        part, method = place
        real: Any = scene.fast._chunks if part == "chunks" else scene.fast._graph
        stopped = StoppedAfter(Stopped(real, method, killed=False), method)
        slow = scene.writers.another("slow", **{part: stopped})
        task = asyncio.create_task(slow.publish(old))
        await stopped._real.reached.wait()
        scene.fast._marks._lease_s = OVER
        await scene.newer()
        slow._marks._at = float("-inf")
        stopped._real.go.set()
        await stopped.reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await scene.end() == await asyncio.to_thread(expected, "rewritten")


async def test_marks_stay_fresh_while_a_store_takes_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_marks, "_RENEW_S", 0.02)
    async with running(tmp_path) as runtime:
        scene = Scene(runtime, "narrowed")
        old = await scene.old()
        chunks = Stopped(scene.fast._chunks, "stage", False)
        slow = scene.writers.another("slow", chunks=chunks)
        task = asyncio.create_task(slow.publish(old))
        await chunks.reached.wait()
        other = await runtime.state.begin(slow.generation, ["x/y/z"], "other", 0)
        state: Any = runtime.state
        marks: list[tuple[str]] = []
        while not marks:
            asked = "SELECT writer FROM staging WHERE since > ? AND writer = 'slow'"
            marks = await state._database.read(lambda tx: tx.execute(asked, (other.at,)))  # noqa: B023
            await asyncio.sleep(0.01)
        chunks.go.set()
        assert (await task).committed == [True]


async def test_a_mark_that_was_fresh_when_a_writer_began_survives_its_end(tmp_path: Path) -> None:
    """Its writer may have staged after the other had, and then be killed."""
    async with running(tmp_path) as runtime:
        scene = Scene(runtime, "narrowed")
        old = await scene.old()
        quick = Stopped(runtime.state, "finish", False)
        patient = scene.writers.another("patient", state=quick)
        task = asyncio.create_task(scene.writers.to_the_end(patient, old))
        await quick.reached.wait()
        document = old[0].record.document
        await runtime.state.begin(patient.generation, [document], "dead", 0)
        patient._marks._lease_s = 0.0
        quick.go.set()
        await task
        assert await runtime.state.leftovers(patient.generation, older_s=OVER, announces=False) == [document]


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
        left = await runtime.state.leftovers(generation, older_s=OVER, announces=True)
        if not left:
            break
        applier._marks._lease_s = OVER
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
