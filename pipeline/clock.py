"""Time as an argument: nothing below the composition root asks the system for it."""

import datetime
from collections.abc import Callable

Clock = Callable[[], str]
"""Returns now, RFC 3339 UTC with microseconds."""


def rfc3339(moment: datetime.datetime) -> str:
    """Write an aware time as RFC 3339 UTC with microseconds, the one form whose text order is time order."""
    return moment.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def system_clock() -> str:
    """Return the system's time."""
    return rfc3339(datetime.datetime.now(datetime.UTC))


def earlier(moment: str, seconds: float) -> str:
    """Return the time so many seconds before another, both as `rfc3339` writes them."""
    return rfc3339(datetime.datetime.fromisoformat(moment) - datetime.timedelta(seconds=seconds))
