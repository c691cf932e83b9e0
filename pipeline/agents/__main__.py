"""`python -m pipeline.agents run` starts a worker; `create-topics` makes the topics it needs.

Settings come from the environment (SHINSEN_KAFKA, SHINSEN_POSTGRES, SHINSEN_WEAVIATE, SHINSEN_SPARQL, ...).
At its start a worker waits for stores that are away, as long as that takes, and says so in its log.
Exit code 2: configured wrongly, the message says what to do. Other than 0: start it again, nothing is lost.
"""

import argparse
import asyncio
import logging
import os
import sys
import threading
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from typing import TypeVar

import structlog
from mode import Worker as Process

from pipeline.agents.batches import growing_pauses
from pipeline.agents.service import STAGES, Worker
from pipeline.agents.topic_admin import check_topics, create_topics
from pipeline.errors import BackendUnavailable, InvalidConfiguration, ShinsenError
from pipeline.logs import log_at
from pipeline.settings import Settings
from pipeline.stack_wiring import check_stack_settings, live_generation, open_state, stack_topics
from pipeline.worker_wiring import open_workshop
from schemas.topics import Topic, generation_topics

log = structlog.get_logger(__name__)
T = TypeVar("T")

CRASH_S = 5.0
"""Until a worker of which a part failed is gone."""
STOP_S = 20.0
"""Until a worker that was told to stop is gone, whatever its batches, or Faust in a rebalance, still wait for."""


def main() -> int:
    """Run the command; return the exit code."""
    arguments = _arguments()
    try:
        settings = Settings()
        check_stack_settings(settings)
        if arguments.command == "create-topics":
            asyncio.run(_create(settings))
        else:
            log_at(settings.log_level)
            asyncio.run(_when_up(partial(check_topics, settings.kafka, stack_topics(settings).all())))
    except ShinsenError as error:
        print(error, file=sys.stderr)
        return 2 if isinstance(error, InvalidConfiguration) else 1
    if arguments.command == "run":
        _work(settings, arguments.stage or STAGES, arguments.generation or ())
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m pipeline.agents", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=("run", "create-topics"))
    parser.add_argument("--stage", action="append", choices=STAGES, help="serve this stage only; may be repeated")
    parser.add_argument(
        "--generation",
        action="append",
        metavar="NAME",
        help="serve this generation, whatever it was built with, and no other; may be repeated",
    )
    return parser.parse_args()


async def _create(settings: Settings) -> None:
    """Create the topics of the installation and of its generations."""
    declared: list[Topic] = [*stack_topics(settings).all()]
    await create_topics(settings.kafka, declared)
    async with open_state(settings) as state:
        for one in await state.generations():
            topics = generation_topics(settings.topic_prefix, one.name, settings.partitions).all()
            await create_topics(settings.kafka, topics)


def _work(settings: Settings, stages: tuple[str, ...], generations: tuple[str, ...]) -> None:
    """Run a worker until it is told to stop, or fails."""
    for chatty in ("httpx", "httpcore"):
        logging.getLogger(chatty).setLevel(logging.WARNING)  # a line for each request
    worker = _Shift(settings, stages, generations)
    try:
        Process(worker, loglevel=settings.log_level, redirect_stdouts=False, quiet=True).execute_from_commandline()
    except SystemExit:
        if worker.refused is not None:
            print(worker.refused, file=sys.stderr)
            raise SystemExit(2) from worker.refused
        raise


async def _when_up(work: Callable[[], Awaitable[T]]) -> T:
    """Do work as soon as the servers that it needs answer; until then wait longer and longer, and say so."""
    pauses = growing_pauses(None)
    while True:
        try:
            return await work()
        except BackendUnavailable as error:
            pause = next(pauses)
            log.warning("worker_waits", reason=str(error), seconds=pause)
            await asyncio.sleep(pause)


def _gone_in(seconds: float) -> None:
    """End the process after that, with exit code 1: what was not acknowledged is delivered again."""
    timer = threading.Timer(seconds, os._exit, (1,))
    timer.daemon = True
    timer.start()


class _Shift(Worker):
    """A worker that opens what it needs when it starts, and closes it when everything has stopped."""

    def __init__(self, settings: Settings, stages: tuple[str, ...], generations: tuple[str, ...]) -> None:
        self._settings = settings
        self._resources = AsyncExitStack()
        self.refused: InvalidConfiguration | None = None
        """Why it could not start, where starting it again is no use."""
        super().__init__(stages=stages, pinned=generations)

    async def on_start(self) -> None:
        """Open the stores, and start what is to be served now."""
        try:
            shop, state, built_with = await _when_up(
                lambda: self._resources.enter_async_context(open_workshop(self._settings))
            )
            await _when_up(partial(live_generation, state, built_with))
            self.equip(shop, state, built_with)
            await _when_up(super().on_start)
        except InvalidConfiguration as error:
            self.refused = error
            raise

    def _crash(self, reason: BaseException) -> None:
        """End the process soon, whatever still hangs: a failed part of Faust can take minutes to stop."""
        if not self.crashed:
            log.error("worker_failed", reason=f"{type(reason).__name__}: {reason}", advice="start it again")
            _gone_in(CRASH_S)
        super()._crash(reason)

    async def stop(self) -> None:
        """Stop in order: batches under way are finished, as long as that takes no longer than STOP_S."""
        _gone_in(STOP_S)
        await super().stop()

    async def on_shutdown(self) -> None:
        """Close the stores."""
        await self._resources.aclose()


if __name__ == "__main__":
    sys.exit(main())
