"""`python -m pipeline.agents run` starts a worker; `create-topics` makes the topics it needs.

Settings come from the environment (SHINSEN_KAFKA, SHINSEN_POSTGRES, SHINSEN_WEAVIATE, SHINSEN_SPARQL, ...).
Exit code 2: configured wrongly, the message says what to do. Other than 0: start it again, nothing is lost.
"""

import argparse
import asyncio
import logging
import os
import sys
import threading
from contextlib import AsyncExitStack

import structlog
from mode import Worker as Process

from pipeline.agents.service import STAGES, Worker
from pipeline.agents.topic_admin import check_topics, create_topics
from pipeline.errors import InvalidConfiguration, ShinsenError
from pipeline.logs import log_at
from pipeline.settings import Settings
from pipeline.stack_wiring import check_stack_settings, live_generation, open_state, stack_topics
from pipeline.worker_wiring import open_workshop
from schemas.topics import Topic, generation_topics

log = structlog.get_logger(__name__)

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
            asyncio.run(check_topics(settings.kafka, stack_topics(settings).all()))
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
    log_at(settings.log_level)
    for chatty in ("httpx", "httpcore"):
        logging.getLogger(chatty).setLevel(logging.WARNING)  # a line for each request
    worker = _Shift(settings, stages, generations)
    Process(worker, loglevel=settings.log_level, redirect_stdouts=False, quiet=True).execute_from_commandline()


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
        super().__init__(stages=stages, pinned=generations)

    async def on_start(self) -> None:
        """Open the stores, and start what is to be served now."""
        shop, state, built_with = await self._resources.enter_async_context(open_workshop(self._settings))
        await live_generation(state, built_with)
        self.equip(shop, state, built_with)
        await super().on_start()

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
