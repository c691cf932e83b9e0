"""Waiting: what freshness tokens and `?wait=applied` stand on."""

import asyncio

import pytest

from pipeline.errors import EventDead, NotFresh
from pipeline.ports.state import State
from pipeline.settling import Settling
from schemas.document import Stage
from schemas.outcome import TokenPart
from tests.contracts.examples import DOCUMENT, GENERATION, at, letter, manifest, outcome, record


async def settle(state: State, document: str = DOCUMENT, ordinal: int = 1, stage: Stage = "full") -> None:
    await state.commit(GENERATION, [manifest(document, ordinal, stage=stage)])
    await state.collected(GENERATION, [(document, at(ordinal))], 1)


@pytest.fixture
def settling(state: State) -> Settling:
    async def live() -> str:
        return GENERATION

    return Settling(state, live)


async def test_nothing_asked_is_settled(settling: Settling) -> None:
    await settling.settled([], 0)


async def test_at_the_position_or_beyond_is_settled(state: State, settling: Settling) -> None:
    await settle(state, ordinal=5)
    await settling.settled([TokenPart(DOCUMENT, at(5)), TokenPart(DOCUMENT, at(4))], 0)


async def test_waits_until_the_position_is_reached(state: State, settling: Settling) -> None:
    await settle(state, ordinal=1)
    waiting = asyncio.create_task(settling.settled([TokenPart(DOCUMENT, at(2))], 5))
    await asyncio.sleep(0.02)
    assert not waiting.done()
    await settle(state, ordinal=2)
    settling.progressed()
    await asyncio.wait_for(waiting, 0.5)


async def test_looks_again_even_if_nobody_woke_it(state: State, settling: Settling) -> None:
    waiting = asyncio.create_task(settling.settled([TokenPart(DOCUMENT, at(1))], 5))
    await asyncio.sleep(0.02)
    await settle(state)
    await asyncio.wait_for(waiting, 3)


async def test_too_late_is_not_fresh_and_says_what_is_open(state: State, settling: Settling) -> None:
    await settle(state)
    with pytest.raises(NotFresh, match=r"erp/equipment/x.*1 of 2"):
        await settling.settled([TokenPart(DOCUMENT, at(1)), TokenPart("erp/equipment/x", at(1))], 0.05)


async def test_text_alone_is_not_settled(state: State, settling: Settling) -> None:
    await settle(state, stage="text")
    with pytest.raises(NotFresh):
        await settling.settled([TokenPart(DOCUMENT, at(1))], 0)


async def test_a_dead_letter_is_told_at_once(state: State, settling: Settling) -> None:
    await state.bury([letter(reason="列がない")])
    with pytest.raises(EventDead, match="列がない"):
        await settling.settled([TokenPart(DOCUMENT, at(1))], 5)


async def test_a_refused_version_that_was_withdrawn_is_dead_not_settled(state: State, settling: Settling) -> None:
    await state.bury([letter()])
    await settle(state)
    with pytest.raises(EventDead):
        await settling.settled([TokenPart(DOCUMENT, at(1))], 5)
    await state.resolve(["letter-1"])
    await settling.settled([TokenPart(DOCUMENT, at(1))], 0)


async def test_a_dead_letter_of_another_version_does_not_matter(state: State, settling: Settling) -> None:
    await state.bury([letter(ordinal=9)])
    await settle(state, ordinal=2)
    await settling.settled([TokenPart(DOCUMENT, at(2))], 0)


async def test_an_event_below_a_truncate_settles_with_the_delete(state: State, settling: Settling) -> None:
    await state.collection("erp", "equipment", positioned=True)
    await state.set_floor("erp", "equipment", at(5), "5", "2025-01-05")
    await state.advance([record(DOCUMENT, 1, "log:1")])
    with pytest.raises(NotFresh):
        await settling.settled([TokenPart(DOCUMENT, at(1))], 0)
    await settle(state, ordinal=5)
    await settling.settled([TokenPart(DOCUMENT, at(1))], 0)


async def test_outcomes_when_all_are_known_or_the_time_is_over(state: State, settling: Settling) -> None:
    await state.announce([outcome("log:1", "applied")])
    assert await settling.outcomes(["log:1", "log:2"], 0.05) == {"log:1": "applied"}
    waiting = asyncio.create_task(settling.outcomes(["log:1", "log:2", "log:2"], 5))
    await asyncio.sleep(0.02)
    await state.announce([outcome("log:2", "superseded")])
    settling.progressed()
    assert await asyncio.wait_for(waiting, 0.5) == {"log:1": "applied", "log:2": "superseded"}
