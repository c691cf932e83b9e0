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
from pipeline.ports.state import State
from schemas.change_event import RawEvent
from schemas.record import Record
from schemas.topics import generation_topics


class Sent:
    """The producer, standing still: what it was asked to send of events that have ended."""

    def __init__(self) -> None:
        self.ended: list[str] = []

    async def done(self, _: Any, records: Sequence[tuple[Record, Any]], __: Any) -> None:
        self.ended += [event for record, _ in records for event in record.origins]

    async def analyzed(self, *_: Any) -> None:
        """Not of interest here."""


class NothingCold:
    """A preparer that has nothing to do."""

    async def models_work(self) -> bool:
        return True

    async def analyzed(self, *_: Any, **__: Any) -> list[Any]:
        return []


@pytest.fixture
async def state(tmp_path: Path) -> AsyncIterator[State]:
    database = open_state_database(tmp_path)
    yield sqlite_state(database)
    await database.close()


def delivered(offset: int, position: str, *events: str) -> Delivered:
    record = Record(
        document="erp/parts/1", op="upsert", position=position, version="", occurred_at="", columns={}, origins=events
    )
    raw = RawEvent(value=msgspec.json.encode(record), key=b"erp/parts/1")
    return Delivered(id=f"records-0-{offset}", raw=raw, times={}, place="records-0", offset=offset)


async def test_events_that_a_newer_version_of_the_batch_names_no_more_are_announced_again(state: State) -> None:
    """The first one has ended before the second came: by a sweep whose worker was killed before it said so."""
    sent = Sent()
    topics = generation_topics("t.", "g1", 1)
    stage = Analyzing("g1", topics, state, cast(Any, NothingCold()), cast(Any, sent), system_clock)
    await stage.take([delivered(0, "1", "events-0-0"), delivered(1, "2", "events-0-1")], "live")
    assert sent.ended == ["events-0-0"], "the second is applied, and announced by whoever does"
