"""The index builder in a real embedded runtime: one document's fault is its own, a store that is down loses nothing."""

import json
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from pipeline.embedded.runtime import EmbeddedRuntime
from pipeline.errors import BackendUnavailable
from pipeline.steps.map import map_record
from schemas.change_event import RawEvent
from schemas.knowledge import Fact
from tests.differential.events import Change, history
from tests.differential.running import running

MENTION = ("赤い荷役車が構内で停止した。",)
REPORTS = [Change("report", f"r{n}", (MENTION, ["all-staff"], "田中")) for n in range(6)]
LEDGER = Change("machine", "F-17", ("赤い荷役車", "フォークリフト", ["all-staff"], "1.50"))
BAD = Change("machine_bad", "F-17")
F17 = "erp/equipment/F-17"


@pytest.fixture
async def runtime(tmp_path: Path) -> AsyncIterator[EmbeddedRuntime]:
    async with running(tmp_path) as runtime:
        yield runtime


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.embedded.loops.FIRST_PAUSE", 0.01)
    monkeypatch.setattr("pipeline.embedded.index_builder.FIRST_PAUSE", 0.01)


def live(runtime: EmbeddedRuntime) -> Any:
    return runtime._generation


async def outcomes(runtime: EmbeddedRuntime, number: int) -> list[str]:
    known = await runtime.state.outcomes([f"log:{n}" for n in range(1, number + 1)])
    return [known.get(f"log:{n}", "") for n in range(1, number + 1)]


def failing(real: Callable[..., Any], error: Exception, times: int, document: str = "") -> Callable[..., Any]:
    """Fail the first calls (that are about a document)."""
    left = [times]

    async def fail(*given: Any, **named: Any) -> Any:
        if left[0] and (not document or document in str(given)):
            left[0] -= 1
            raise error
        return await real(*given, **named)

    return fail


async def test_a_document_that_breaks_the_graph_is_put_aside_alone(runtime: EmbeddedRuntime) -> None:
    real = live(runtime).graph.stage

    async def stage(document: str, version: str, facts: Sequence[Fact]) -> None:
        if document == "dms/reports/r3":
            raise ValueError("a fact that no store takes")
        await real(document, version, facts)

    live(runtime).graph.stage = stage
    await runtime.submit(history(REPORTS))
    await runtime.quiet(30)
    assert await outcomes(runtime, 6) == ["applied"] * 3 + ["dead_letter"] + ["applied"] * 2
    (letter,) = await runtime.state.dead_letters()
    assert (letter.document, letter.code, letter.stage) == ("dms/reports/r3", "internal_error", "apply")
    assert "a fact that no store takes" in letter.reason


async def test_a_document_that_breaks_a_step_is_put_aside_alone(
    runtime: EmbeddedRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(record: Any, *more: Any, **named: Any) -> Any:
        if record.document == "dms/reports/r3":
            raise ZeroDivisionError("a bug")
        return map_record(record, *more, **named)

    monkeypatch.setattr("pipeline.prepare.map_record", broken)
    await runtime.submit(history(REPORTS))
    await runtime.quiet(30)
    assert await outcomes(runtime, 6) == ["applied"] * 3 + ["dead_letter"] + ["applied"] * 2
    monkeypatch.undo()
    (letter,) = await runtime.state.dead_letters()
    assert await runtime.retry([letter.id]) == {letter.id: "queued"}
    await runtime.quiet(30)
    assert await outcomes(runtime, 6) == ["applied"] * 6
    assert await runtime.state.dead_letters() == []


@pytest.mark.parametrize("store", ["chunks", "graph"])
@pytest.mark.parametrize("method", ["stage", "collect"])
async def test_a_store_that_is_down_for_a_while_loses_nothing(
    runtime: EmbeddedRuntime, store: str, method: str
) -> None:
    part = getattr(live(runtime), store)
    setattr(part, method, failing(getattr(part, method), BackendUnavailable("away"), 7))
    await runtime.submit(history([*REPORTS, LEDGER]))
    await runtime.quiet(30)
    assert await outcomes(runtime, 7) == ["applied"] * 7
    assert await runtime.state.dead_letters() == []
    assert (await runtime.status())["paused"] == []


async def test_a_state_store_that_is_down_while_burying_loses_nothing(runtime: EmbeddedRuntime) -> None:
    state: Any = runtime.state
    state.bury = failing(state.bury, BackendUnavailable("away"), 3)
    await runtime.submit(history([BAD, *REPORTS]))
    await runtime.quiet(30)
    assert await outcomes(runtime, 7) == ["dead_letter"] + ["applied"] * 6


async def test_a_refused_version_withdraws_the_one_before(runtime: EmbeddedRuntime) -> None:
    """Otherwise what stands would depend on which of the two arrived first, and a narrower ACL might not hold."""
    await runtime.submit(history([LEDGER, *REPORTS[:1]]))
    await runtime.quiet(30)
    await runtime.submit(history([LEDGER, *REPORTS[:1], BAD])[2:])
    await runtime.quiet(30)
    assert await outcomes(runtime, 3) == ["applied", "applied", "dead_letter"]
    manifest = (await runtime.state.manifests("g1", [F17]))[F17]
    assert (manifest.op, manifest.version) == ("delete", "0/1E")
    async with runtime.live() as indexes:
        assert await indexes.graph.facts_of([F17]) == []
        assert [c.document async for c in indexes.chunks.scan()] == ["dms/reports/r0"]
        assert "name" not in {f.method for f in await indexes.graph.facts_of(["dms/reports/r0"])}
    assert await runtime.state.pending("g1") == []


async def test_a_newer_version_mends_a_refused_one(runtime: EmbeddedRuntime) -> None:
    events: list[RawEvent] = history([BAD, LEDGER])
    for event in events:
        await runtime.submit([event])
        await runtime.quiet(30)
    assert await outcomes(runtime, 2) == ["superseded", "applied"]
    assert await runtime.state.dead_letters() == []


async def test_a_rebuild_that_refuses_again_announces_nothing_new(runtime: EmbeddedRuntime) -> None:
    await runtime.submit(history([BAD]))
    await runtime.quiet(30)
    before = (await runtime.state.counts("g1"))["outcome.dead_letter"]
    await runtime.replay()
    counts = await runtime.state.counts("g2")
    assert (before, counts["outcome.dead_letter"], counts["dead_letters"]) == (1, 1, 1)


async def test_a_retried_event_that_is_refused_again_stays_open(runtime: EmbeddedRuntime) -> None:
    body = {"source": "dms", "collection": "memos", "key": "1", "record": {"title": "題", "body": "本文"}}
    placed = {**body, "position": 1}
    timed = {**body, "key": "2", "occurred_at": "2025-07-08T00:00:00Z"}
    await runtime.submit([RawEvent(value=json.dumps(e).encode()) for e in (placed, timed)])
    await runtime.quiet(30)
    (letter,) = await runtime.state.dead_letters()
    assert letter.code == "mixed_positions"
    assert await runtime.retry([letter.id]) == {letter.id: "queued"}
    await runtime.quiet(30)
    (again,) = await runtime.state.dead_letters()
    assert (again.id, again.attempts, again.event) == (letter.id, 2, letter.event)
