"""What a replay is asked for, how fast it goes, and when it stands still."""

from typing import Any

import pytest

from pipeline.backends.sql_state.state import SqlState
from pipeline.backends.sqlite import Database
from pipeline.backends.state_sqlite import SqliteSqlDatabase
from pipeline.errors import InvalidQuery, NotFound, NotPossible
from pipeline.ports.generations import Generation, Rebuild, ReplayPlan, Standing
from pipeline.ports.state import CollectionState
from pipeline.replay.plan import Start, check_plan, start_of
from pipeline.replay.progress import STUCK_S, Meter, status_of
from pipeline.replay.supply import Look
from pipeline.replay.switch import Switch
from tests.contracts.examples import at, manifest, record

GENERATION = Generation(name="g2", created_at="2025-07-08T00:00:00Z", versions={"embedder": "e5"})
PLAN = ReplayPlan(into="new")


def test_a_start_is_the_beginning_a_time_or_offsets() -> None:
    assert start_of("beginning") == Start()
    assert start_of("2025-07-08T09:00:00+09:00") == Start(time="2025-07-08T00:00:00.000000Z")
    assert start_of("a.b-c:0:5, a.b-c:1:0") == Start(offsets={("a.b-c", 0): 5, ("a.b-c", 1): 0})


@pytest.mark.parametrize(
    "text", ["", "soon", "2025-07-08", "2025-07-08T09:00:00", "a:0", "a:0:5,later", "a:-1:5", "a:0:５"]
)
def test_anything_else_is_no_start(text: str) -> None:
    with pytest.raises(InvalidQuery, match="`beginning`"):
        start_of(text)


def test_an_unknown_collection_is_named_with_those_that_are_there() -> None:
    known = [CollectionState("erp", "orders", True, ""), CollectionState("erp", "parts", True, "")]
    check_plan(ReplayPlan(into="live", collections=("erp/parts",)), known)
    with pytest.raises(NotFound, match=r"erp/part .*erp/orders, erp/parts"):
        check_plan(ReplayPlan(into="live", collections=("erp/part",)), known)


class Time:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_rate_is_that_of_the_last_minute() -> None:
    time = Time()
    meter = Meter(time)
    assert meter.rate == 0.0
    for second in range(200):
        time.now = float(second)
        meter.note(10 * second if second < 100 else 1_000 + 2 * (second - 100))
    assert meter.rate == pytest.approx(2.0, abs=0.1)


def status(
    meter: Meter, rebuild: Rebuild | None, behind: int, look: Look, state: str = "building"
) -> tuple[float | None, str]:
    generation = Generation(name="g2", state=state, created_at="", versions={"embedder": "e5"})
    found = status_of(generation, rebuild, Standing(records=100, behind=behind, relinks=0), look, meter, "")
    return found.left_s, found.stuck


def test_time_left_and_what_is_stuck() -> None:
    time = Time()
    meter, rebuild, served = Meter(time), Rebuild(plan=PLAN), Look(lag=5, members=2)
    assert status(meter, rebuild, 60, served) == (None, "")
    time.now = 10.0
    assert status(meter, rebuild, 40, served) == (20.0, "")
    time.now += STUCK_S + 1
    assert "no document has come" in status(meter, rebuild, 40, served)[1]
    assert status(meter, rebuild, 39, served)[1] == ""
    assert "embedder e5" in status(meter, rebuild, 39, Look(lag=5, members=0))[1]
    assert status(meter, rebuild, 0, Look())[0] == 0.0
    failed = Rebuild(plan=PLAN, failure="a store did not answer")
    assert "shinsen prune g2" in status(meter, failed, 39, served)[1]
    assert "goes on" in status(meter, rebuild, 39, served, "pruning")[1]
    time.now += STUCK_S + 1
    assert status(meter, Rebuild(plan=PLAN, phase="partial"), 39, served)[1] == "", "a trial lacks most on purpose"


class NeverEven(SqlState):
    """A state store in which some document is newer in the live generation at every look."""

    async def promote(self, name: str, at: str = "", *, unless_older: bool = False) -> list[str]:
        return ["a/b/1"] if unless_older else await super().promote(name, at)


class NoSupply:
    """Only what a switch asks of a shell."""

    async def look(self, name: str) -> Look:
        return Look()

    async def promoted(self, name: str, replaced: str) -> None:
        self.live = name


async def test_changes_that_come_without_a_pause_do_not_hold_up_a_promote(database: Database) -> None:
    state = NeverEven(SqliteSqlDatabase(database))
    for name in ("g1", "g2"):
        await state.create_generation(Generation(name=name, created_at=name, versions={}))
    await state.promote("g1")
    await state.advance([record("a/b/1", 2)])
    await state.commit("g1", [manifest("a/b/1", 2)])
    await state.commit("g2", [manifest("a/b/1", 1)])
    supply: Any = NoSupply()
    switch, building = Switch(state, supply, dict, lambda: "2025-07-08T00:00:00Z"), (await state.generations())[1]
    with pytest.raises(NotPossible, match="lacks the newest version of 1 documents, a/b/1"):
        await switch.promote(building, False, 0.2)
    await state.commit("g2", [manifest("a/b/1", 2)])
    await state.collected("g2", [("a/b/1", at(2))], 1)
    promoted = await switch.promote(building, False, 0.4)
    assert (promoted.generation, promoted.replaced, supply.live) == ("g2", "g1", "g2")
    assert "a/b/1" in promoted.warnings[0]
