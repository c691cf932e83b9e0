"""Where log lines go: standard error, readable on a terminal, JSON otherwise."""

import logging
import sys
from typing import Literal

import structlog

from pipeline.settings import Settings

Level = Literal["debug", "info", "warning", "error"]


def configure_logs(settings: Settings, *, quiet: bool) -> None:
    """Log at the level of the settings; `quiet` means warnings only unless a level was asked for."""
    log_at("warning" if quiet and "log_level" not in settings.model_fields_set else settings.log_level)


def log_at(level: Level) -> None:
    """Log at this level and above."""
    number = logging.getLevelNamesMapping()[level.upper()]
    logging.basicConfig(level=max(number, logging.WARNING), stream=sys.stderr, format="%(name)s: %(message)s")
    readable = sys.stderr.isatty()
    processors: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    if readable:
        processors.append(structlog.dev.ConsoleRenderer())
    else:
        processors += [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(ensure_ascii=False)]
    structlog.configure(
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),  # the stream of that moment
        cache_logger_on_first_use=False,
    )
