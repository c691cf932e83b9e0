"""The corpus of a golden set through the product: published as change events, waited for until all is applied."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from urllib.parse import quote

import httpx
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from ops.connection import ApiProblem, Connection, documents
from ops.demo_load import indexed
from ops.evaluation.formats import Place
from ops.evaluation.golden import Passage
from ops.publisher import Publisher, Receipt
from pipeline.errors import InvalidConfiguration, NotFound, NotPossible
from schemas.change_event import NativeEvent

PATIENCE_S, POLL_S = 120.0, 0.5
SHOWN = 3
LOOKED_UP = 200


def events(passages: Sequence[Passage], place: Place, occurred_at: str) -> Iterator[NativeEvent]:
    """Yield one upsert a passage; the same time and text again change nothing."""
    for passage in passages:
        yield NativeEvent(
            source=place.source,
            collection=place.collection,
            key=passage.id,
            occurred_at=occurred_at,
            record={"title": passage.title, "body": passage.text},
        )


def written_at(path: Path) -> str:
    """Return when a file or the newest file of a folder was written: the time of its events."""
    files = [file for file in path.rglob("*") if file.is_file()] if path.is_dir() else [path]
    newest = max((file.stat().st_mtime for file in files), default=0.0)
    return datetime.fromtimestamp(newest, UTC).isoformat(timespec="seconds")


async def load(
    connection: Connection, passages: Sequence[Passage], place: Place, occurred_at: str, timeout_s: float
) -> str:
    """Publish passages, wait until all their vectors and facts are there too, and return what the report says of it.

    Raises:
        InvalidConfiguration: The set has no corpus.
        NotPossible: Events were refused, or ended as dead letters.
        NotFresh: Not all was applied within `timeout_s`.
    """
    if not passages:
        raise InvalidConfiguration(
            "there is nothing to load: no corpus comes with this golden set (--corpus names one)"
        )
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True, highlight=False)) as progress:
        bar = progress.add_task("passages published", total=len(passages))
        receipt = Receipt(batches=[])
        publisher = Publisher.over(connection, lane="bulk")
        async for batch in publisher.stream(events(passages, place, occurred_at)):
            receipt.batches.append(batch)
            progress.advance(bar, len(batch.results))
        _refuse([f"{result.key}: {result.reason}" for result in receipt.rejected], "refused")
        await indexed(connection, progress)
        dead = await publisher.settled(receipt, timeout_s)
        _refuse([result.key for result in dead], "dead letters")
        await _refined(connection, progress)
    said = await _others(connection, {passage.id for passage in passages}, place)
    return "; ".join(part for part in (said, await unrefined(connection)) if part)


async def _refined(connection: Connection, progress: Progress) -> None:
    """Wait for the vectors of sentences, which come last; no longer than PATIENCE_S after the last one came."""
    left = await _lacking(connection)
    bar = progress.add_task("with vectors of sentences", total=left) if left else None
    end = time.monotonic() + PATIENCE_S
    while bar is not None and left and time.monotonic() < end:
        await asyncio.sleep(POLL_S)
        before, left = left, await _lacking(connection)
        progress.advance(bar, before - left)
        end = time.monotonic() + PATIENCE_S if left < before else end


async def unrefined(connection: Connection) -> str:
    """Say that documents lack vectors of sentences; empty when none does."""
    left = await _lacking(connection)
    return f"{left} documents still lack vectors of sentences, which come when nothing else waits" if left else ""


async def _lacking(connection: Connection) -> int:
    return int((await connection.get("/v1/status"))["counts"].get("unrefined", 0))


async def check_relevant(connection: Connection, keys: Sequence[str]) -> None:
    """Refuse to measure against a profile that does not hold the first relevant documents.

    Raises NotFound: nothing of the set is there, so every figure would be 0 for that reason.
    """
    for key in keys[:SHOWN]:
        source, collection, _ = key.split("/", 2)
        async for _ in documents(connection, source, collection):
            return
    raise NotFound(
        f"{connection.where} holds no document of {', '.join(sorted({k.rsplit('/', 1)[0] for k in keys[:SHOWN]}))}: "
        "load the set with --load, or name the profile that holds it with --url or --data"
    )


async def not_there(connection: Connection, keys: Sequence[str], groups: str | None) -> str:
    """Say which of the first LOOKED_UP documents are not there, or not for these groups; empty when all are."""
    headers = httpx.Headers({} if groups is None else {"x-shinsen-groups": groups}, encoding="utf-8")
    away: list[str] = []
    for key in keys[:LOOKED_UP]:
        try:
            await connection.get(f"/v1/documents/{quote(key)}", headers=headers)
        except ApiProblem as problem:
            if problem.status != HTTPStatus.NOT_FOUND:
                raise
            away.append(key)
    if not away:
        return ""
    more = ", …" if len(away) > SHOWN else ""
    looked = f" (of {len(keys)} that no question found, {LOOKED_UP} were looked up)" if len(keys) > LOOKED_UP else ""
    return (
        f"{len(away)} documents of the set are not there, or not for this asker, and count as not found: "
        f"{', '.join(away[:SHOWN])}{more}{looked}"
    )


async def _others(connection: Connection, ours: set[str], place: Place) -> str:
    """Say when the collection holds more than the set: those documents take part in every ranking."""
    prefix = place.key("")
    others = 0
    async for document in documents(connection, place.source, place.collection):
        others += document["key"].removeprefix(prefix) not in ours
    said = f"{len(ours)} passages loaded as {prefix}…"
    return said + (f"; the collection holds {others} other documents, which take part" if others else "")


def _refuse(found: Sequence[str], what: str) -> None:
    if found:
        more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        raise NotPossible(f"{len(found)} passages were {what}: {'; '.join(found[:SHOWN])}{more}")
