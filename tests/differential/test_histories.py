"""Same final records, same digest: whatever the order, the duplication, the batches, the restarts.

Each history runs twice: in order, one event at a time; and as it may arrive in the worst case.
SHINSEN_HISTORIES sets how many (default 25 per test); failing examples print as code to be put into an @example.
"""

import asyncio
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, example, given, seed, settings

from schemas.change_event import RawEvent
from tests.differential.events import Change, history
from tests.differential.running import assert_counts, copy_of, one_by_one, put_back, running, scratch
from tests.differential.strategies import Arrival, cases, late_ledgers

HISTORIES = int(os.environ.get("SHINSEN_HISTORIES", "25"))
SEED = int(os.environ.get("SHINSEN_SEED", "20250708"))
SETTINGS = settings(
    max_examples=HISTORIES,
    deadline=None,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    phases=[Phase.explicit, Phase.generate] + ([Phase.shrink] if "SHINSEN_SHRINK" in os.environ else []),
)
pytestmark = pytest.mark.timeout(120 + 6 * HISTORIES)
print(f"differential tests: SHINSEN_SEED={SEED} SHINSEN_HISTORIES={HISTORIES}")

A_LEDGER = Change("machine", "F-17", ("赤い荷役車", "フォークリフト", ["all-staff"], "1.50"))
RENAMED = Change("machine", "F-17", ("三号機", "フォークリフト", ["maintenance"], "1.50"))
MENTION = Change(
    "report", "r1", (("赤い荷役車が構内で停止した。", "三号機のブレーキが鳴った。"), ["all-staff"], "田中")
)
NOTE = Change("note", "n1", ("赤い荷役車の当番表",))
GONE = Change("machine_gone", "F-17")
BAD = Change("machine_bad", "F-17")
PART = Change("machine_part", "F-17", ("", "フォークリフト", ["all-staff"], "1.50"))
TRUNCATE = Change("truncate")


def arriving(*order: int, batches: tuple[int, ...] = (), restart_after: int = 0, wait: bool = True) -> Arrival:
    return Arrival(list(order), list(batches), restart_after, wait)


async def as_it_arrives(folder: Path, events: list[RawEvent], arrival: Arrival) -> dict[str, str]:
    """Run events in the order of arrival; return the digest, also that of a rebuild and of a restart after it."""
    arrived = [events[n] for n in arrival.order]
    batches: list[list[RawEvent]] = []
    for size in [*arrival.batches, len(arrived)]:
        batches.append(arrived[:size])
        arrived = arrived[size:]
    cut = arrival.restart_after or len(batches)
    for part in (batches[:cut], batches[cut:]):
        async with running(folder) as runtime:
            for batch in part:
                await runtime.submit(batch)
                if arrival.wait:
                    await runtime.quiet(30)
    async with running(folder) as runtime:
        digest = await runtime.digest()
        await assert_counts(runtime, events)
        await runtime.replay()
        assert await runtime.digest() == digest, "a rebuild gives another digest"
        await assert_counts(runtime, events)
    return digest


async def check(happened: list[Change], arrival: Arrival) -> None:
    events = history(happened)
    with scratch() as one, scratch() as two:
        assert await as_it_arrives(two, events, arrival) == await one_by_one(one, events)


@seed(SEED)
@SETTINGS
@given(cases())
def test_any_arrival_ends_with_the_digest_of_the_ordered_run(case: tuple[list[Change], Arrival]) -> None:
    asyncio.run(check(*case))


@seed(SEED)
@SETTINGS
@given(late_ledgers())
@example(([A_LEDGER, MENTION], arriving(1, 0)))
@example(([A_LEDGER, MENTION, RENAMED], arriving(1, 2, 0)))
@example(([A_LEDGER, MENTION, NOTE, GONE], arriving(2, 3, 1, 0)))
@example(([A_LEDGER, MENTION, NOTE, GONE], arriving(3, 2, 1, 0, wait=False)))
@example(([A_LEDGER, MENTION, BAD], arriving(2, 1, 0)))
@example(([A_LEDGER, BAD, MENTION, RENAMED], arriving(1, 3, 2, 0)))
@example(([BAD, BAD, MENTION], arriving(1, 0, 2)))
@example(([MENTION, A_LEDGER, TRUNCATE], arriving(2, 0, 1)))
@example(([A_LEDGER, TRUNCATE, RENAMED, TRUNCATE, MENTION], arriving(3, 1, 0, 2, 4)))
@example(([GONE, TRUNCATE, MENTION], arriving(1, 0, 2, restart_after=1, batches=(2,))))
@example(([A_LEDGER, RENAMED._replace(tie=True), MENTION], arriving(2, 1, 0, 0)))
@example(([A_LEDGER, PART, MENTION], arriving(1, 2, 0)))
@example(([A_LEDGER, RENAMED, PART, MENTION], arriving(2, 0, 3, 1)))
@example(([A_LEDGER, GONE, PART, MENTION], arriving(2, 0, 3, 1)))
@example(([A_LEDGER, TRUNCATE, PART, MENTION], arriving(2, 0, 3, 1, wait=False)))
def test_a_ledger_that_arrives_last(case: tuple[list[Change], Arrival]) -> None:
    asyncio.run(check(*case))


async def with_old_copies(folder: Path, events: list[RawEvent], name: str) -> dict[str, str]:
    """Run half of the events, copy an index, run the rest, put the copy back, look again."""
    half = len(events) // 2
    async with running(folder) as runtime:
        await runtime.submit(events[:half])
        await runtime.quiet(30)
    with scratch() as backup:
        copy_of(folder / name, backup / name)
        async with running(folder) as runtime:
            await runtime.submit(events[half:])
            await runtime.quiet(30)
        put_back(backup / name, folder / name)
    async with running(folder) as runtime:
        await assert_counts(runtime, events)
        return await runtime.digest()


@seed(SEED + 1)
@settings(SETTINGS, max_examples=max(1, HISTORIES // 2))
@given(cases())
@example(([A_LEDGER, MENTION, NOTE, GONE], arriving(1, 0, 2, 3)))
@example(([A_LEDGER, MENTION, BAD, TRUNCATE], arriving(0, 1, 2, 3)))
def test_an_older_copy_of_an_index_is_caught_up(case: tuple[list[Change], Arrival]) -> None:
    async def both() -> None:
        events = [history(case[0])[n] for n in case[1].order]
        with scratch() as one, scratch() as two, scratch() as three:
            clean = await one_by_one(one, history(case[0]))
            assert await with_old_copies(two, events, "graph-g1") == clean
            assert await with_old_copies(three, events, "chunks-g1.db") == clean

    asyncio.run(both())
