"""Apply: stage, commit, collect, and what is left after an end at each place in between."""

import asyncio
import functools
import gc
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline.embedded.runtime import EmbeddedRuntime
from schemas.change_event import RawEvent
from tests.differential.events import Change, history
from tests.differential.running import running, scratch

LEDGER = Change("machine", "F-17", ("赤い荷役車", "フォークリフト", ["all-staff"], "1.50"))
RENAMED = Change("machine", "F-17", ("三号機", "フォークリフト", ["maintenance"], "1.50"))
MENTION = Change(
    "report", "r1", (("赤い荷役車が構内で停止した。", "三号機のブレーキが鳴った。"), ["all-staff"], "田中")
)
SHORTER = Change("report", "r1", (("荷を降ろした。",), ["maintenance"], "田中"))
GONE = Change("report_gone", "r1")
EVENTS = history([LEDGER, MENTION, RENAMED, SHORTER, MENTION, GONE, MENTION])


class Killed(BaseException):
    """Ends the work as a kill would: nobody handles it."""


@functools.cache
def expected() -> dict[str, str]:
    """The digest of a run without an end in between."""

    async def run() -> dict[str, str]:
        with scratch() as folder:
            async with running(folder) as runtime:
                await runtime.submit(EVENTS)
                return await runtime.digest()

    return asyncio.run(run())


PLACES = [
    ("state", "begin"),
    ("chunks", "stage"),
    ("graph", "stage"),
    ("state", "commit_declared"),
    ("state", "mark_relinks"),
    ("state", "looked_up"),
    ("chunks", "collect"),
    ("graph", "collect"),
    ("state", "finish"),
]


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("place", PLACES, ids=[".".join(place) for place in PLACES])
def test_an_end_at_any_place_is_made_good_at_the_next_start(place: tuple[str, str], after: bool) -> None:
    """The last step done or not, whichever event it was for."""
    assert asyncio.run(ended_again_and_again(place, after)) == expected()


async def ended_again_and_again(place: tuple[str, str], after: bool) -> dict[str, str]:
    with scratch() as folder:
        ends = 0
        for number, event in enumerate(EVENTS):
            async with running(folder) as runtime:
                ends += await until_killed(runtime, event, place, after, skip=number % 2)
        assert ends >= 2
        async with running(folder) as runtime:
            return await runtime.digest()


async def until_killed(
    runtime: EmbeddedRuntime, event: RawEvent, place: tuple[str, str], after: bool, skip: int
) -> bool:
    """Submit and let the publisher end at the place (the second time it comes there if `skip`); say whether it did."""
    owner: Any = runtime._generation.builder._applier
    part, method = place
    target = {"chunks": owner._chunks, "graph": owner._graph, "state": owner._state}[part]
    ended: list[bool] = []
    left = [skip]
    real = getattr(target, method)

    async def end(*given: Any, **named: Any) -> Any:
        if ended:
            raise Killed
        if left[0]:
            left[0] -= 1
            return await real(*given, **named)
        ended.append(True)
        if after:
            await real(*given, **named)
        raise Killed

    owner.publish = _dying(owner.publish, ended)
    setattr(target, method, end)
    await runtime.submit([event])
    builder = runtime._generation.builder
    while not ended and (len(builder.schedule) or runtime.intake.end > runtime.intake.reconciled):  # noqa: ASYNC110
        await asyncio.sleep(0.002)
    delattr(target, method)
    return bool(ended)


def _dying(real: Callable[..., Any], ended: list[bool]) -> Callable[..., Any]:
    """After the end nothing is published any more."""

    async def publish(*given: Any) -> Any:
        if ended:
            raise Killed
        return await real(*given)

    return publish


async def test_publishing_again_changes_nothing(tmp_path: Path) -> None:
    async with running(tmp_path) as runtime:
        await runtime.submit(EVENTS[:2])
        before = await runtime.digest()
        owner: Any = runtime._generation.builder
        records = [r async for r in runtime.state.scan_records()]
        prepared = await owner._preparer.light(records, "full", "live")
        published = await owner._applier.publish(prepared)
        assert published.committed == [True, True]
        assert published.relinks == []
        assert await runtime.digest() == before


async def test_a_late_writer_does_no_harm(tmp_path: Path) -> None:
    async with running(tmp_path) as runtime:
        owner: Any = runtime._generation.builder
        await runtime.submit(EVENTS[:2])
        await runtime.quiet(30)
        old = [r async for r in runtime.state.scan_records()]
        late = await owner._preparer.light(old, "full", "live")
        await runtime.submit(EVENTS[2:4])
        before = await runtime.digest()
        published = await owner._applier.publish(late)
        assert published.committed == [False, False]
        assert await runtime.digest() == before


@pytest.mark.parametrize(
    "place", [("chunks", "stage"), ("graph", "stage"), ("chunks", "collect"), ("graph", "collect")]
)
async def test_an_end_while_an_index_is_written_says_nothing(tmp_path: Path, place: tuple[str, str]) -> None:
    """asyncio prints a traceback for whatever ended with an error that nobody looked at."""
    said: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: said.append(context))
    writing = asyncio.Event()

    async def hang(*_: Any) -> None:
        writing.set()
        await asyncio.Event().wait()

    async with running(tmp_path) as runtime:
        owner: Any = runtime._generation.builder._applier
        part, method = place
        setattr({"chunks": owner._chunks, "graph": owner._graph}[part], method, hang)
        submitting = asyncio.create_task(runtime.submit(EVENTS[:2]))
        await asyncio.wait_for(writing.wait(), 30)
        submitting.cancel()
        await asyncio.wait({submitting})
    gc.collect()
    assert said == []


@pytest.fixture
async def runtime(tmp_path: Path) -> AsyncIterator[EmbeddedRuntime]:
    async with running(tmp_path) as runtime:
        yield runtime


async def test_a_text_stage_is_searchable_and_has_no_facts(runtime: EmbeddedRuntime) -> None:
    owner: Any = runtime._generation.builder
    await runtime.submit(EVENTS[1:2])
    await runtime.quiet(30)
    (record,) = [r async for r in runtime.state.scan_records()]
    prepared = await owner._preparer.light([record], "text", "bulk")
    published = await owner._applier.publish(prepared)
    assert published.committed == [False]  # never back to text once it was full
