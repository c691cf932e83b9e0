"""What the stage of applying announces when a worker is killed between the end of an event and its announcement."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from pipeline.agents.applying import Applying
from pipeline.agents.delivery import Delivered
from pipeline.clock import system_clock
from pipeline.errors import BackendUnavailable
from schemas.change_event import RawEvent
from schemas.messages import Analyzed
from schemas.outcome import Outcome
from schemas.topics import generation_topics
from tests.differential.events import history
from tests.differential.running import running
from tests.pipeline.test_appliers import MACHINE, Writers, advance


class Sent:
    """The producer, standing still: references as messages, and the events whose ends were announced."""

    def __init__(self) -> None:
        self.asked: list[Delivered] = []
        self.announced: list[str] = []
        self.away = True

    async def references(
        self, _: Any, documents: Iterable[str], origins: Mapping[str, tuple[str, ...]] | None = None
    ) -> None:
        for name in documents:
            value = msgspec.msgpack.encode(Analyzed(document=name, origins=(origins or {}).get(name, ())))
            self.asked.append(Delivered(id=f"bulk-0-{len(self.asked)}", raw=RawEvent(value=value), times={}))

    async def outcomes(self, outcomes: Sequence[tuple[Outcome, Any]]) -> None:
        if self.away and outcomes:
            raise BackendUnavailable("Kafka is away")
        self.announced += [outcome.event for outcome, _ in outcomes]


async def test_what_the_sweep_asked_for_is_announced_after_a_crash(tmp_path: Path) -> None:
    """The message that first named the event is gone, so that only the sweep's is delivered again."""
    async with running(tmp_path) as runtime:
        writers, sent = Writers(runtime), Sent()
        document = await advance(runtime, 1, *history([MACHINE]))
        applier, topics = writers.another("own"), generation_topics("t.", "g1", 1)
        stage = Applying(topics, runtime.state, writers._preparer, applier, cast(Any, sent), system_clock)
        await stage.send_references([document])
        with pytest.raises(BackendUnavailable):
            await stage.take(sent.asked, "bulk")
        assert await runtime.state.outcomes(["log:1"]) == {"log:1": "applied"}
        sent.away = False
        await stage.take(sent.asked, "bulk")
    assert sent.announced == ["log:1"]
