"""What the stage of analysis sends on of events whose ends may never have been announced."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from pipeline.agents.analyzing import Analyzing
from pipeline.agents.delivery import Delivered
from pipeline.backends.state_sqlite import open_state_database, sqlite_state
from pipeline.clock import system_clock
from pipeline.errors import BackendUnavailable, InvalidEvent
from pipeline.ports.generations import Generation
from pipeline.ports.state import State
from pipeline.prepare import Prepared, Refused
from schemas.change_event import RawEvent
from schemas.record import Record
from schemas.topics import generation_topics


class Sent:
    """The producer, standing still: what it was asked to send of events that have ended."""

    def __init__(self) -> None:
        self.ended: list[str] = []
        self.away = False

    async def done(self, _: Any, records: Sequence[tuple[Record, Any]], __: Any) -> None:
        self.ended += [event for record, _ in records for event in record.origins]

    async def analyzed(self, _: Any, prepared: Sequence[tuple[Prepared, Any]], __: Any) -> None:
        """Whoever publishes these announces their events, too."""
        if self.away and prepared:
            raise BackendUnavailable("Kafka is away")
        self.ended += [event for one, _ in prepared for event in one.record.origins]

    async def dead_letters(self, *_: Any) -> None:
        """Not of interest here."""


class NothingCold:
    """A preparer that has nothing to do."""

    async def models_work(self) -> bool:
        return True

    async def analyzed(self, *_: Any, **__: Any) -> list[Any]:
        return []


class Refusing(NothingCold):
    """A preparer of records that cannot be mapped."""

    async def analyzed(self, records: Sequence[Record], *_: Any, **__: Any) -> list[Any]:
        return [Refused(record, InvalidEvent("no_title", "a column is missing")) for record in records]


@pytest.fixture
async def state(tmp_path: Path) -> AsyncIterator[State]:
    database = open_state_database(tmp_path)
    yield sqlite_state(database)
    await database.close()


def recorded(position: str, *events: str) -> Record:
    return Record(
        document="erp/parts/1", op="upsert", position=position, version="", occurred_at="", columns={}, origins=events
    )


def delivered(offset: int, position: str, *events: str) -> Delivered:
    raw = RawEvent(value=msgspec.json.encode(recorded(position, *events)), key=b"erp/parts/1")
    return Delivered(id=f"records-0-{offset}", raw=raw, times={}, place="records-0", offset=offset)


async def test_events_that_a_newer_version_of_the_batch_names_no_more_are_announced_again(state: State) -> None:
    """The first one has ended before the second came: by a sweep whose worker was killed before it said so."""
    sent = Sent()
    topics = generation_topics("t.", "g1", 1)
    stage = Analyzing("g1", topics, state, cast(Any, NothingCold()), cast(Any, sent), system_clock)
    await stage.take([delivered(0, "1", "events-0-0"), delivered(1, "2", "events-0-1")], "live")
    assert sent.ended == ["events-0-0"], "the second is applied, and announced by whoever does"


@pytest.mark.parametrize("newer", [[], [recorded("3", "events-0-2")]], ids=["the newest", "behind a newer version"])
async def test_events_of_a_record_that_was_put_aside_before_a_crash_are_announced(
    state: State, newer: list[Record]
) -> None:
    """Their ends are in the state store by then, and the record does not name them any more."""
    sent = Sent()
    stage = Analyzing(
        "g1", generation_topics("t.", "g1", 1), state, cast(Any, Refusing()), cast(Any, sent), system_clock
    )
    stage.announces = True
    await state.create_generation(Generation(name="g1", created_at="2025-07-08T00:00:00Z"))
    await state.promote("g1")
    await state.advance([recorded("1", "events-0-0"), recorded("2", "events-0-1")])
    batch = [delivered(0, "2", "events-0-0", "events-0-1")]
    sent.away = True
    with pytest.raises(BackendUnavailable):
        await stage.take(batch, "live")
    assert set(await state.outcomes(["events-0-0", "events-0-1"])) == {"events-0-0", "events-0-1"}
    await state.advance(newer)
    sent.away = False
    await stage.take(batch, "live")
    assert sorted(sent.ended) == ["events-0-0", "events-0-1"]
