"""`python -m pipeline.agents run` starts a worker; `create-topics` makes the topics it needs.

Settings come from the environment (SHINSEN_KAFKA, SHINSEN_POSTGRES, SHINSEN_WEAVIATE, SHINSEN_SPARQL, ...).
Exit code 2: configured wrongly, the message says what to do. Other than 0: start it again, nothing is lost.
"""

import argparse
import asyncio
import logging
import sys

import faust

from pipeline.agents.indexer import make_app
from pipeline.agents.topic_admin import check_topics, create_topics
from pipeline.errors import InvalidConfiguration, ShinsenError
from pipeline.settings import Settings
from pipeline.stack_wiring import check_stack_settings, open_journey, stack_topics


def main() -> int:
    """Run the command; return the exit code."""
    arguments = argparse.ArgumentParser(prog="python -m pipeline.agents", description=__doc__)
    arguments.add_argument("command", choices=("run", "create-topics"))
    command = arguments.parse_args().command
    settings = Settings()
    try:
        check_stack_settings(settings)
        declared = stack_topics(settings)
        prepare = create_topics if command == "create-topics" else check_topics
        asyncio.run(prepare(settings.kafka, declared.all()))
    except ShinsenError as error:
        print(error, file=sys.stderr)
        return 2 if isinstance(error, InvalidConfiguration) else 1
    if command == "run":
        _work(settings)
    return 0


def _work(settings: Settings) -> None:
    """Run a worker until it is told to stop, or fails."""
    for chatty in ("httpx", "httpcore"):
        logging.getLogger(chatty).setLevel(logging.WARNING)  # a line for each request
    app = make_app(
        settings.kafka,
        stack_topics(settings),
        f"{settings.topic_prefix}indexer",
        settings.data / "faust",
        lambda: open_journey(settings),
    )
    faust.Worker(app, loglevel=settings.log_level, redirect_stdouts=False, quiet=True).execute_from_commandline()


if __name__ == "__main__":
    sys.exit(main())
