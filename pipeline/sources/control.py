"""What an operator sees of the sources and does to them, in both shells."""

import json
from collections.abc import Awaitable, Callable, Sequence

import structlog

from pipeline.clock import Clock
from pipeline.errors import BackendUnavailable, NotFound, NotPossible
from pipeline.ports.runtime import Submission
from pipeline.ports.source_operations import Forgotten, NewEpoch, SourceOverview
from pipeline.ports.sources import SourceHead
from pipeline.ports.state import State
from pipeline.sources.epochs import SourceEpochs, suspicious, went_backwards
from schemas.change_event import RawEvent

log = structlog.get_logger(__name__)

Places = Callable[[str], Awaitable[dict[str, int]]]
"""Returns place → offset of the next event there, of the places of one source, or of all (""). Raises
BackendUnavailable."""
Submit = Callable[[Sequence[RawEvent]], Awaitable[list[Submission]]]


class SourceControl:
    """Implements `pipeline.ports.source_operations.SourceOperations` over the state store and what keeps the events."""

    def __init__(
        self,
        state: State,
        places: Places,
        submit: Submit,
        clock: Clock,
        changed: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """`changed` is called when there is a new epoch."""
        self._state, self._places, self._submit, self._clock = state, places, submit, clock
        self._changed = changed

    async def overview(self) -> list[SourceOverview]:
        """Return every source of which events or epochs are known, by name."""
        epochs = {start.source: start for start in await self._state.epochs()}
        heads, collections = await self._heads(), await self._collections()
        return [
            SourceOverview(
                source=name,
                epoch=epochs[name].epoch if name in epochs else 0,
                since=epochs[name].at if name in epochs else "",
                position=_highest(heads.get(name, [])).version,
                at=_highest(heads.get(name, [])).at,
                collections=collections.get(name, []),
                recent=sum(len(head.recent) for head in _looked_at(heads.get(name, []))),
                superseded=sum(head.recent.count("x") for head in _looked_at(heads.get(name, []))),
            )
            for name in sorted({*epochs, *heads, *collections})
        ]

    async def warnings(self) -> list[str]:
        """Return what `pipeline.sources.epochs.went_backwards` says now."""
        return went_backwards(await self._state.source_heads())

    async def new_epoch(self, source: str) -> NewEpoch:
        """Let all events of a source that come from now on be newer than every one before.

        Raises NotFound for a source that never sent anything: then there is nothing older, and the name is wrong.
        """
        known = sorted({*await self._heads(), *await self._collections()})
        if source not in known:
            raise NotFound(f"no event of a source {source!r} was ever read; known are: {', '.join(known) or 'none'}")
        starts = await self._places("")
        number = await self._state.new_epoch(source, starts, self._clock())
        if self._changed is not None:
            await self._changed()
        log.info("new_epoch", source=source, epoch=number, starts=starts)
        return NewEpoch(source=source, epoch=number, starts=starts)

    async def forget_older(self, source: str) -> Forgotten:
        """Delete what no event of the newest epoch has brought: rows that the restored database does not have.

        To be called when the snapshot after `new_epoch` was read, not before. It is a truncate at the beginning
        of the epoch, so its order of arrival does not matter. Raises NotPossible without a new epoch.
        """
        epoch = SourceEpochs(await self._state.epochs()).newest().get(source, 0)
        if not epoch:
            raise NotPossible(
                f"{source!r} is in its first epoch, so nothing is older: `shinsen source new-epoch` first"
            )
        names = [c.collection for c in await self._state.collections() if c.source == source and c.positioned]
        taken = await self._submit([_truncate(source, name, self._clock()) for name in names]) if names else []
        refused = [one.reason for one in taken if one.status != "accepted"]
        if refused:
            raise BackendUnavailable(f"{len(refused)} of {len(names)} collections were not taken: {refused[0]}; again")
        return Forgotten(source=source, epoch=epoch, collections=names, events=[one.event for one in taken])

    async def _heads(self) -> dict[str, list[SourceHead]]:
        found: dict[str, list[SourceHead]] = {}
        for head in await self._state.source_heads():
            found.setdefault(head.source, []).append(head)
        return found

    async def _collections(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for one in await self._state.collections():
            found.setdefault(one.source, []).append(one.collection)
        return found


def _looked_at(heads: Sequence[SourceHead]) -> Sequence[SourceHead]:
    """Return the places that give reason to worry, else all: quiet ones must not hide them."""
    return suspicious(heads) or heads


def _highest(heads: Sequence[SourceHead]) -> SourceHead:
    nothing = SourceHead(source="", place="", head="", version="", at="", recent="")
    return max(heads, key=lambda head: head.head, default=nothing)


def _truncate(source: str, collection: str, now: str) -> RawEvent:
    """Write the truncate as Debezium would, at the lowest position of its epoch."""
    block = {"connector": "postgresql", "name": source, "table": collection, "lsn": 0}
    body = {"op": "t", "before": None, "after": None, "source": block, "shinsen_at": now}
    return RawEvent(value=json.dumps(body, ensure_ascii=False).encode())
