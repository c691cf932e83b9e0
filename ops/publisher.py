"""The Python publisher: sends change events in batches, waits when told to, and says what became of each.

```python
async with Publisher("http://127.0.0.1:8000") as publisher:
    receipt = await publisher.send([{"source": "cmms", "collection": "work_orders", "key": "MR-1", "position": 1,
                                     "record": {"title": "…", "body": "…"}}])
    await publisher.settled(receipt)
```
"""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import msgspec

from ops.connection import ApiProblem, Connection, Unreachable, connect
from pipeline.errors import NotFresh
from schemas.change_event import Lane, NativeEvent, RawEvent

Event = RawEvent | NativeEvent | Mapping[str, Any]

BATCH = 200
BATCH_BYTES = 4_000_000
PATIENCE_S = 300.0
"""How long back-pressure or an unreachable server is borne without any progress."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.2, 15.0
FIRST_POLL_S, LONGEST_POLL_S = 0.05, 1.0
_BUSY = (429, 502, 503)


class EventResult(msgspec.Struct, kw_only=True):
    """What became of one event."""

    index: int
    """In the order of sending."""
    status: str
    """`accepted` or `rejected`."""
    key: str = ""
    event: str = ""
    token: str = ""
    outcome: str = ""
    """`applied`, `duplicate`, `superseded`, `dead_letter`; empty when it was not waited for."""
    reason: str = ""
    code: str = ""
    dead_letter: str = ""


class Batch(msgspec.Struct, kw_only=True):
    """What became of the events of one request."""

    results: list[EventResult]
    token: str
    """Freshness token of all its accepted events; empty when there is none."""


class Receipt(msgspec.Struct, kw_only=True):
    """What became of some events."""

    batches: list[Batch]

    @property
    def results(self) -> list[EventResult]:
        """All events, in the order of sending."""
        return [result for batch in self.batches for result in batch.results]

    @property
    def tokens(self) -> list[str]:
        """Freshness tokens; together they cover all accepted events."""
        return [batch.token for batch in self.batches if batch.token]

    @property
    def rejected(self) -> list[EventResult]:
        """The refused ones."""
        return [result for result in self.results if result.status != "accepted"]


class Publisher:
    """Publishes to a server (`http://...`) or into a data folder (through its server when one runs)."""

    def __init__(self, target: str | Path, *, lane: Lane = "live", patience_s: float = PATIENCE_S) -> None:
        """Nothing is connected before `async with`."""
        self._target, self._lane, self._patience = target, lane, patience_s
        self._stack = AsyncExitStack()
        self._connection: Connection | None = None

    @classmethod
    def over(cls, connection: Connection, *, lane: Lane = "live", patience_s: float = PATIENCE_S) -> "Publisher":
        """Publish over a connection that the caller opened and will close."""
        publisher = cls(connection.where, lane=lane, patience_s=patience_s)
        publisher._connection = connection
        return publisher

    async def __aenter__(self) -> "Publisher":
        """Connect."""
        if self._connection is None:
            plain = isinstance(self._target, Path)
            where = {"data": self._target} if plain else {"url": self._target}
            self._connection = await self._stack.enter_async_context(connect(create=plain, **where))  # type: ignore[arg-type]
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close what was opened here."""
        await self._stack.aclose()

    async def send(self, events: Iterable[Event], *, outcomes_s: float = 0.0) -> Receipt:
        """Send all events in order and return what became of them; `outcomes_s`: wait so long for outcomes."""
        return Receipt(batches=[batch async for batch in self.stream(events, outcomes_s=outcomes_s)])

    async def stream(self, events: Iterable[Event], *, outcomes_s: float = 0.0) -> AsyncIterator[Batch]:
        """Send batch by batch, yielding what became of each; the next one goes out when asked for."""
        first = 0
        for lines in _lines(events):
            for batch in await self._send(lines, first, outcomes_s):
                yield batch
            first += len(lines)

    async def settled(self, receipt: Receipt, timeout_s: float = 600.0) -> list[EventResult]:
        """Wait until every accepted event is in the indexes, or has ended as a dead letter; return the latter.

        Raises NotFresh after `timeout_s`.
        """
        end = time.monotonic() + timeout_s
        dead: list[EventResult] = []
        for batch in receipt.batches:
            if batch.token and not await self._reached(batch.token, end):
                # The token covers the batch and is spoiled by one dead letter: ask for each event.
                for result in batch.results:
                    if result.token and not await self._reached(result.token, end):
                        result.outcome = "dead_letter"
                        dead.append(result)
        return dead

    async def _reached(self, token: str, end: float) -> bool:
        """Wait for a token; False when an event behind it is a dead letter."""
        pause = FIRST_POLL_S
        while True:
            state = (await self._patiently("GET", "/v1/freshness", params={"token": token}))["token"]
            if state["satisfied"] or state["outcome"] == "dead_letter":
                return bool(state["satisfied"])
            if time.monotonic() > end:
                raise NotFresh("not everything is indexed yet; nothing is lost: `shinsen status` shows what is pending")
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_POLL_S)

    async def _send(self, lines: Sequence[bytes], first: int, outcomes_s: float) -> list[Batch]:
        query = {"lane": self._lane} | ({"wait": "applied", "timeout": f"{outcomes_s:.3f}s"} if outcomes_s else {})
        headers = {"content-type": "application/x-ndjson"}
        content = b"\n".join(lines)
        try:
            body = await self._patiently("POST", "/v1/events", content=content, params=query, headers=headers)
        except ApiProblem as problem:
            if "results" in problem.body:  # all of them were refused
                return [_batch(problem.body, first)]
            if problem.status == 413:
                return await self._halves(lines, first, outcomes_s, problem)
            raise
        return [_batch(body, first)]

    async def _halves(self, lines: Sequence[bytes], first: int, outcomes_s: float, problem: ApiProblem) -> list[Batch]:
        """The request was too large: send it in two, down to the one event that is itself too large."""
        if len(lines) == 1:
            refused = EventResult(index=first, status="rejected", reason=str(problem), code="too_large")
            return [Batch(results=[refused], token="")]
        middle = len(lines) // 2
        return [
            *await self._send(lines[:middle], first, outcomes_s),
            *await self._send(lines[middle:], first + middle, outcomes_s),
        ]

    async def _patiently(self, method: str, path: str, **arguments: Any) -> Any:
        """Send; on back-pressure or no answer wait and send again. Events may so arrive twice: that does no harm."""
        if self._connection is None:
            raise RuntimeError("use the publisher in `async with`")
        end, pause = time.monotonic() + self._patience, FIRST_PAUSE_S
        while True:
            try:
                response = await self._connection.request(method, path, **arguments)
                return msgspec.json.decode(response.content)
            except (ApiProblem, Unreachable) as error:
                busy = isinstance(error, Unreachable) or error.status in _BUSY
                asked = error.retry_after if isinstance(error, ApiProblem) else None
                wait = max(asked or 0.0, pause * random.uniform(0.5, 1.0))
                if not busy or time.monotonic() + wait > end:
                    raise
                await asyncio.sleep(wait)
                pause = min(2 * pause, LONGEST_PAUSE_S)


def _encoded(event: Event) -> bytes:
    """One line of NDJSON. A line break between two values is as good as a space; inside a text it is no JSON anyway."""
    if not isinstance(event, RawEvent):
        return msgspec.json.encode(event)
    if event.value is None:
        raise ValueError("a tombstone has no form in HTTP: publish a delete")
    return event.value.replace(b"\r", b" ").replace(b"\n", b" ") or b'""'


def _lines(events: Iterable[Event]) -> Iterator[list[bytes]]:
    """Cut into requests by number and size."""
    lines: list[bytes] = []
    size = 0
    for event in events:
        line = _encoded(event)
        if lines and (len(lines) >= BATCH or size + len(line) > BATCH_BYTES):
            yield lines
            lines, size = [], 0
        lines.append(line)
        size += len(line)
    if lines:
        yield lines


def _batch(body: Mapping[str, Any], first: int) -> Batch:
    results = [_result(item, first) for item in body["results"]]
    return Batch(results=results, token=str(body.get("token", "")) if any(r.token for r in results) else "")


def _result(item: Mapping[str, Any], first: int) -> EventResult:
    problem = item.get("problem") or {}
    return EventResult(
        index=first + int(item.get("index", 0)),
        status=str(item["status"]),
        key=str(item.get("key", "")),
        event=str(item.get("event", "")),
        token=str(item.get("token", "")),
        outcome=str(item.get("outcome", "")),
        reason=str(problem.get("detail", "")),
        code=str(problem.get("code", "")),
        dead_letter=str(item.get("dead_letter", "")),
    )
