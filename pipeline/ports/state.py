"""The state store: what must never be lost, and the only commit point of a document."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Protocol

import msgspec

from pipeline.ports.generations import Generation, GenerationRows
from pipeline.ports.publishing import DeclaredName, Publishing
from pipeline.ports.sources import Sources
from schemas.access import AccessRule
from schemas.document import Manifest
from schemas.outcome import DeadLetter, Outcome, OutcomeName
from schemas.record import Record

__all__ = ["Advance", "CollectionState", "DeclaredName", "Generation", "Pending", "State"]


class Advance(msgspec.Struct, frozen=True):
    """What happened to a record offered to the state store."""

    result: str
    """`advanced`, `redelivered` (this very event already won), `duplicate`, `superseded`, `filled` (superseded, but
    what stands took columns from it), or `truncated`: superseded by the floor of its collection, at which a delete
    now stands."""
    record: Record
    """The record that stands now."""


class CollectionState(msgspec.Struct, frozen=True):
    """What is remembered of a source collection."""

    source: str
    collection: str
    positioned: bool
    floor: str
    """Events below this position are superseded (truncate); empty when never truncated."""
    floor_version: str = ""
    """The floor as the source wrote it."""
    floor_at: str = ""
    """Source time of the truncate."""


class Pending(msgspec.Struct, frozen=True):
    """A document whose indexes are behind its record, in one generation."""

    document: str
    position: str
    fresh: bool
    """True when it has no applied version (so it may be staged as text first)."""
    stage: str
    """Stage of the committed manifest: ``, `text` or `full`."""


class State(Publishing, GenerationRows, Sources, Protocol):
    """Records, positions, manifests, names, outcomes, dead letters, offsets, generations.

    Each call is atomic and durable when it returns. Positions compare as plain byte strings.
    """

    # records
    async def collection(self, source: str, collection: str, *, positioned: bool) -> CollectionState:
        """Return the collection's row; the first call fixes `positioned` for good."""

    async def collections(self) -> list[CollectionState]:
        """Return all rows, ordered by source and collection."""

    async def set_floor(self, source: str, collection: str, floor: str, version: str, occurred_at: str) -> None:
        """Raise the floor of a known collection; a lower one than there is changes nothing."""

    async def advance(self, records: Sequence[Record]) -> list[Advance]:
        """Offer records in order; each wins only over a smaller position (compare-and-set).

        Equal position: `redelivered` when its origin is among the row's or already announced under
        that position as the winner, else `duplicate`. A winner takes over the loser's unannounced
        origins. Below the collection's floor, unless a newer record stands, the result is `truncated`:
        a delete at the floor stands, as if the record had been there when its collection was truncated.

        Columns in `unavailable` are those of the newest older version that brought them: of the row that
        stands, or of a version that comes late (`filled`, also when it comes again: the row has new columns
        under a position that is greater, see `schemas.position.next_filling`). In the end the same row
        stands in any order of arrival.
        """

    async def records(self, documents: Sequence[str]) -> dict[str, Record]:
        """Return the rows that exist; missing keys are absent."""

    def scan_records(self, prefix: str = "") -> AsyncIterator[Record]:
        """Yield all records (deletes too) whose key starts with `prefix`, in byte order of the key."""

    # manifests, per generation
    async def pending(self, generation: str, *, after: str = "", limit: int = 1000) -> list[Pending]:
        """Return documents with key > `after`, in key order, that need work in this generation.

        They are those whose record is newer than the committed manifest, whose events are not announced,
        whose manifest was not collected, whose stage is `text`, that are marked for relinking, or marked
        as being published.
        """

    async def manifests(self, generation: str, documents: Sequence[str]) -> dict[str, Manifest]:
        """Return the committed manifests; missing keys are absent; deletes are there with op delete."""

    async def commit(self, generation: str, manifests: Sequence[Manifest]) -> list[bool]:
        """Replace each manifest if its position is >= the committed one (compare-and-set).

        True: committed, and not collected until `collected`. False: a newer one stands; the caller's
        staged parts are garbage that the next collect of that document removes.
        """

    async def collected(self, generation: str, done: Sequence[tuple[str, str]], revision: int) -> None:
        """Mark (document, position) pairs as collected at index revision `revision`.

        A pair whose committed position differs is left alone.
        """

    async def settled(self, generation: str, documents: Sequence[str]) -> dict[str, str]:
        """Return the position up to which each document is committed, collected and at stage full."""

    async def stages(self, generation: str, documents: Sequence[str]) -> dict[str, str]:
        """Return the committed stage of each document; those without an applied version are absent."""

    async def uncollect_after(self, generation: str, revision: int) -> int:
        """Mark all manifests collected at a later revision as not collected; return how many."""

    async def collected_manifests(self, generation: str, *, after: str = "", limit: int = 1000) -> list[Manifest]:
        """Return the committed manifests that are collected, with key > `after`, in key order."""

    async def uncollect(self, generation: str, broken: Mapping[str, Sequence[Manifest]]) -> dict[str, list[str]]:
        """Mark manifests as not collected that an index (key of `broken`: `chunks`, `graph`) does not hold as they say.

        Only those that stand exactly as given and are collected, and that nobody is publishing: who does makes them
        whole. Returns the documents by index, in key order, and counts them for good (see `counts`).
        """

    async def revision(self, generation: str) -> int:
        """Return the highest revision that `collected` saw, 0 at first."""

    def scan_manifests(self, generation: str) -> AsyncIterator[Manifest]:
        """Yield all committed manifests in byte order of the key."""

    async def counts(self, generation: str) -> dict[str, int]:
        """Return `records`, `documents` (upserts committed), `text`, `full`, `uncollected`, `dead_letters`,
        `relinks`, `unrefined` (see Finish.unrefined), one `outcome.<name>` per outcome, and per index one
        `repaired.<index>`: documents that `uncollect` ever marked for it, absent while there are none."""

    # names: which normalized names records declare, for linking mentions in other documents
    async def replace_names(self, generation: str, declared: Mapping[str, Sequence[DeclaredName]]) -> list[str]:
        """Replace what each document (key of `declared`) declares; [] withdraws all of its names.

        Returns the names (texts) whose set of entities changed, over all documents, ordered.
        """

    async def declared_names(self, generation: str) -> list[DeclaredName]:
        """Return every distinct (name, entity) with one declaring document, ordered by name and entity."""

    async def mark_relinks(self, generation: str, documents: Sequence[str]) -> None:
        """Mark documents for relinking; marking twice is marking once."""

    async def clear_relinks(self, generation: str, documents: Sequence[str]) -> None:
        """Remove marks; missing ones are no error."""

    # outcomes and dead letters
    async def announce(self, outcomes: Sequence[Outcome]) -> None:
        """Record outcomes by event id; a repeated announcement changes nothing, except that a
        `dead_letter` may become something else after a retry. Clears the origins of the record. An
        outcome without event is ignored."""

    async def outcomes(self, events: Sequence[str]) -> dict[str, OutcomeName]:
        """Return the outcomes known; missing ids are absent."""

    async def bury(self, letters: Sequence[DeadLetter]) -> None:
        """Keep dead letters (same id: attempts + 1, unresolved again, the first event known stays) and
        announce `dead_letter`. The document stays pending until a manifest stands at that position.

        Of a record's versions only the newest can have an open letter of stage `map` or `apply`: one
        that comes after a newer record is not kept, and one that comes resolves those below it. Their
        events end as `superseded`. All that holds within each generation. Of a generation that is not live a letter
        ends no event, and is neither listed nor counted until it is; it goes with its generation.
        """

    async def dead_letters(self, *, after: str = "", limit: int = 100, resolved: bool = False) -> list[DeadLetter]:
        """Return letters of the live generation, and of none, with id > `after`, ordered by id."""

    async def dead_letter(self, letter: str) -> DeadLetter | None:
        """Return one, of whatever generation, or None."""

    async def dead_positions(self, documents: Sequence[str]) -> dict[str, list[DeadLetter]]:
        """Return the unresolved letters of these documents, of the live generation and of none."""

    async def resolve(self, letters: Sequence[str], generation: str = "") -> None:
        """Mark letters resolved, unknown ones are no error; with a generation their documents count as
        pending there again, and a letter whose record still stands gives its event back to the record,
        to be announced anew."""

    async def outlived(self, done: Sequence[tuple[str, str]]) -> None:
        """Resolve open letters of stage `map` or `apply` at or below these applied (document, position) pairs.

        Their events end as `applied` at the very position, else as `superseded`. Those that name a generation are
        resolved by `Publishing.finish` in that generation only.
        """

    # offsets, access classes, generations
    async def offset(self, consumer: str) -> int:
        """Return the committed offset, 0 when there is none."""

    async def commit_offset(self, consumer: str, offset: int) -> None:
        """Raise the offset; a lower one changes nothing."""

    async def remember_classes(self, rules: Sequence[AccessRule]) -> None:
        """Keep rules by their access class; known ones are no error."""

    async def access_classes(self) -> dict[str, AccessRule]:
        """Return all known classes."""
