"""A file or folder through the publisher: what was taken, what was refused and where it stands, full syncs."""

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime

import msgspec

from ops.connection import Connection, dead_letters, documents
from ops.publisher import Batch, EventResult, Publisher, Receipt
from ops.readers import BadLine, FileEvent, Reading
from schemas.change_event import RawEvent, split_document_key

Progress = Callable[[int], None]


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """An event that was not applied."""

    where: str
    """`file:line`."""
    reason: str
    key: str = ""
    code: str = ""


class Report(msgspec.Struct, kw_only=True):
    """What became of a file or folder."""

    accepted: int = 0
    deleted: int = 0
    """Deletes of a full sync, among the accepted."""
    rejected: list[Refusal] = []
    dead_letters: list[Refusal] = []
    """Accepted events that could not be applied; known only when they were waited for."""
    waited: bool = False
    tokens: list[str] = []


class Publishing:
    """Publishes one reading over one connection."""

    def __init__(self, connection: Connection, publisher: Publisher, progress: Progress) -> None:
        """`progress` is told how many events have gone out."""
        self._connection, self._publisher, self._progress = connection, publisher, progress
        self.report = Report(rejected=[], dead_letters=[], tokens=[])
        self._where: list[str] = []
        self._receipt = Receipt(batches=[])

    async def publish(self, items: Iterable[FileEvent | BadLine]) -> None:
        """Send events in the order of the file."""
        first = len(self._where)
        async for batch in self._publisher.stream(self._events(items)):
            self._account(batch, first)
            self._progress(len(batch.results))

    async def sync_deletes(self, reading: Reading) -> None:
        """Delete what the collection holds and the file does not: the second half of a full sync."""
        known = [
            split_document_key(document["key"])[2]
            async for document in documents(self._connection, reading.source, reading.collection)
        ]
        before = self.report.accepted
        await self.publish(reading.deletes(known, datetime.now(UTC).isoformat()))
        self.report.deleted = self.report.accepted - before

    async def settle(self, timeout_s: float) -> None:
        """Wait until all is indexed; note dead letters. Raises NotFresh."""
        waiting, self._receipt = self._receipt, Receipt(batches=[])
        dead = await self._publisher.settled(waiting, timeout_s)
        reasons = await self._reasons({result.event for result in dead})
        for result in dead:
            code, reason = reasons.get(result.event, ("", "see `shinsen dlq list`"))
            self.report.dead_letters.append(self._refusal(result, code, reason))
        self.report.waited = True

    def _events(self, items: Iterable[FileEvent | BadLine]) -> Iterator[RawEvent]:
        for item in items:
            if isinstance(item, BadLine):
                self.report.rejected.append(Refusal(where=item.where, reason=item.reason))
            else:
                self._where.append(item.where)
                yield item.event

    def _account(self, batch: Batch, first: int) -> None:
        for result in batch.results:
            result.index += first  # the publisher counts from 0 in each stream
            if result.status == "accepted":
                self.report.accepted += 1
            else:
                self.report.rejected.append(self._refusal(result, result.code, result.reason))
        if batch.token:
            self.report.tokens.append(batch.token)
        self._receipt.batches.append(batch)

    def _refusal(self, result: EventResult, code: str, reason: str) -> Refusal:
        return Refusal(where=self._where[result.index], key=result.key, code=code, reason=reason)

    async def _reasons(self, events: set[str]) -> dict[str, tuple[str, str]]:
        if not events:
            return {}
        return {
            letter["event"]: (letter["code"], letter["reason"])
            async for letter in dead_letters(self._connection)
            if letter["event"] in events
        }
