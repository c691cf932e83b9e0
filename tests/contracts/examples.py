"""Small records, manifests and letters for the contract suites."""

from typing import Any, Literal

from schemas.document import ChunkRef, Manifest, Stage
from schemas.outcome import DeadLetter, Outcome, OutcomeName
from schemas.position import DELETE, UPSERT, Position
from schemas.record import Record

DOCUMENT = "erp/equipment/F-17"
GENERATION = "g1"
Op = Literal["upsert", "delete"]


def at(ordinal: int, *, rank: int = UPSERT, epoch: int = 0) -> str:
    """A position."""
    return Position(epoch, ordinal, rank, "0" * 16).sort_key()


def record(document: str = DOCUMENT, ordinal: int = 1, *origins: str, op: Op = "upsert", **columns: Any) -> Record:
    """A record at a position, with the events folded into it."""
    return Record(
        document=document,
        op=op,
        position=at(ordinal, rank=DELETE if op == "delete" else UPSERT),
        version=str(ordinal),
        occurred_at="2025-07-08T00:00:00.000000Z",
        columns=columns,
        origins=origins,
    )


def manifest(document: str = DOCUMENT, ordinal: int = 1, *, stage: Stage = "full", op: Op = "upsert") -> Manifest:
    """A manifest at a position."""
    return Manifest(
        document=document,
        op=op,
        position=at(ordinal, rank=DELETE if op == "delete" else UPSERT),
        version=str(ordinal),
        stage=stage,
        title="フォークリフト",
        chunks=(ChunkRef("c1", 0, 7),) if op == "upsert" else (),
    )


def outcome(event: str, name: OutcomeName, document: str = DOCUMENT, ordinal: int = 1) -> Outcome:
    """The end of an event."""
    return Outcome(event=event, document=document, position=at(ordinal), outcome=name)


def letter(
    name: str = "letter-1",
    event: str = "log:1",
    document: str = DOCUMENT,
    ordinal: int = 1,
    *,
    stage: Literal["decode", "reconcile", "map", "apply"] = "map",
    reason: str = "列 name がありません",
) -> DeadLetter:
    """A dead letter."""
    return DeadLetter(
        id=name,
        event=event,
        code="missing_column",
        reason=reason,
        document=document,
        position=at(ordinal),
        stage=stage,
        payload=b"\x00\xff{}",
        headers={"content-type": "application/json"},
        at="2025-07-08T00:00:00.000000Z",
    )
