"""Reading what a replay is asked for, and refusing what makes no sense, before anything is done."""

import datetime
import re

import msgspec

from pipeline.clock import rfc3339
from pipeline.errors import InvalidQuery, NotFound
from pipeline.ports.generations import ReplayPlan
from pipeline.ports.state import CollectionState

BEGINNING = "beginning"
_OFFSET = re.compile(r"(?P<topic>[A-Za-z0-9._-]+):(?P<partition>[0-9]{1,9}):(?P<offset>[0-9]{1,18})")


class Start(msgspec.Struct, frozen=True):
    """Where to begin to read a source: at its beginning, at a time, or at offsets."""

    time: str = ""
    """RFC 3339 UTC, or empty."""
    offsets: dict[tuple[str, int], int] = {}
    """(topic, partition) to offset; partitions that are not named begin at their beginning."""

    @property
    def everything(self) -> bool:
        """True at the beginning."""
        return not self.time and not self.offsets


def start_of(text: str) -> Start:
    """Read `--from`. Raises InvalidQuery."""
    if text == BEGINNING:
        return Start()
    moment = _moment(text)
    if moment is not None:
        return Start(time=moment)
    found = [_OFFSET.fullmatch(part.strip()) for part in text.split(",")]
    offsets = {(m["topic"], int(m["partition"])): int(m["offset"]) for m in found if m}
    if len(offsets) == len(found):
        return Start(offsets=offsets)
    raise InvalidQuery(
        f"{text!r} is no start: give `beginning`, a time with its zone (2025-07-08T09:00:00+09:00), or "
        "topic:partition:offset, several separated by commas",
        pointer="/from",
    )


def _moment(text: str) -> str | None:
    """Return a time as RFC 3339 UTC, None when it is none; one without a zone is no start at all."""
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        raise InvalidQuery(
            f"{text!r} has no zone: write {text}+09:00, or ...Z; or begin at `beginning`", pointer="/from"
        )
    return rfc3339(moment)


def check_plan(plan: ReplayPlan, collections: list[CollectionState]) -> None:
    """Raises InvalidQuery for what makes no sense, NotFound for a collection that there is not."""
    start = start_of(plan.start)
    if plan.into != "live":
        for name in ("documents", "holding", "current"):
            if getattr(plan, name):
                raise InvalidQuery(
                    f"`{name}` is for a replay into live: a new generation holds all documents", pointer=f"/{name}"
                )
    if plan.into == "switch" and plan.collections:
        raise InvalidQuery(
            "a part of the collections can be built with into=new, to be compared, or redone with into=live; "
            "what is promoted holds all",
            pointer="/collections",
        )
    if (plan.documents or plan.holding) and not start.everything:
        raise InvalidQuery("give a start or documents, not both", pointer="/from")
    known = {f"{row.source}/{row.collection}" for row in collections}
    unknown = sorted(set(plan.collections) - known)
    if unknown:
        have = ", ".join(sorted(known)) or "none"
        raise NotFound(f"no collection {', '.join(unknown)} was ever published; there are: {have}")
