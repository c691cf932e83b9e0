"""What a writer of indexes asks of the state store: one document is published in begin, commit, finish.

Several writers may publish one generation at once. Whoever begins leaves a mark on each document, and the mark stays
until somebody has finished it, so that what a killed writer left half done is found.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from schemas.document import Manifest
from schemas.outcome import Outcome


class DeclaredName(msgspec.Struct, frozen=True, order=True):
    """A normalized name that a record declares for an entity."""

    name: str
    """As `pipeline.text.normalize.name_key` gives it."""
    family: str
    key: str
    """With the family: the entity."""
    document: str = ""


class NameChange(msgspec.Struct, frozen=True):
    """A name whose set of entities changed, under the number of its last change."""

    number: int
    name: str
    entities: tuple[tuple[str, str], ...] = ()
    """(family, key), ordered: what the name stands for now; () when nobody declares it any more."""


class Begun(msgspec.Struct, frozen=True):
    """What a writer must know before it stages."""

    standing: dict[str, Manifest]
    changes: list[NameChange]
    """Of names, above the number that the writer knew, in order of the number."""
    at: str = ""
    """The store's own time of the marks, RFC 3339 UTC with microseconds."""
    relinking: frozenset[str] = frozenset()
    """Documents whose relinking marks were taken off: whoever called owes each of them a publication."""


class Committed(msgspec.Struct, frozen=True):
    """What a commit did."""

    won: list[bool]
    declared: list[NameChange]
    """Changes that this very commit made: who holds these names is to be looked up."""
    changes: list[NameChange]
    """All changes above the number that the writer knew, its own too, in order of the number."""


class Finish(msgspec.Struct, frozen=True):
    """A published document with the events that ended by it."""

    manifest: Manifest
    outcomes: tuple[Outcome, ...] = ()
    mends: bool = False
    """True: open letters of stage `map` or `apply` at or below this position are resolved (see `State.outlived`)."""
    unrefined: bool | None = None
    """Whether it was published without the vectors of its sentences and is to get them; None: what is noted stays."""


class Publishing(Protocol):
    """Each call is atomic and durable when it returns."""

    async def begin(self, generation: str, documents: Sequence[str], writer: str, known: int) -> Begun:
        """Mark documents as being published by `writer` since now, by the store's clock; again renews the time.

        Takes their relinking marks off: one that is set later is for somebody who begins later. Returns
        the committed manifests, the changes of names above the number `known`, and which were marked.
        """

    async def renew(self, generation: str, documents: Sequence[str], writer: str) -> None:
        """Mark documents again, as from now."""

    async def commit_declared(
        self, generation: str, manifests: Sequence[Manifest], declared: Mapping[str, Sequence[DeclaredName]], known: int
    ) -> Committed:
        """`State.commit`, and in the same step replace the names that the winners among them declare.

        Each name whose set of entities changed gets the next number of the generation. Numbers become
        visible in their order: who saw `n` misses no change below it.
        """

    async def finish(
        self,
        generation: str,
        done: Sequence[Finish],
        revision: int,
        *,
        writer: str,
        stale: str,
        left: Sequence[str] = (),
    ) -> list[bool]:
        """Mark manifests as collected at a revision, announce their outcomes, and take marks off.

        False, and nothing happens to that document, when its committed manifest is not exactly the one
        given any more. Off the finished documents go the writer's own marks and those from before the
        time `stale` (by the store's clock, see `Begun.at`): of writers that were gone before this one
        began, so that all they wrote is made good. Off those `left` (a newer version stands, this
        writer wrote nothing) only its own go.
        """

    async def unfinished(self, generation: str, documents: Sequence[str], *, announces: bool) -> set[str]:
        """Return those of the documents that are pending in this generation (see `State.pending`).

        Events that are not announced count only with `announces`.
        """

    async def leftovers(self, generation: str, *, older_s: float, announces: bool, limit: int = 1000) -> list[str]:
        """Return documents that somebody left half done; cheap, however many documents there are.

        First, in key order, those marked as being published for more than `older_s` seconds by the
        store's clock. Then, in key order, those marked for relinking, not collected, at stage text, and
        with `announces` those whose events are not announced. Only documents with a record, which can
        be published again. One that is behind its record for another reason is found by `State.pending`
        only.
        """

    async def unrefined(self, generation: str, *, after: str = "", limit: int = 1000) -> list[str]:
        """Return documents with key > `after`, in key order, that lack vectors of sentences (see Finish.unrefined)."""

    async def name_changes(self, generation: str, known: int) -> list[NameChange]:
        """Return the changes above a number, in order; of several changes of one name the last."""

    async def unlooked(self, generation: str, limit: int = 1000) -> list[NameChange]:
        """Return changes of which nobody noted that its holders were looked up, in order."""

    async def looked_up(self, generation: str, changes: Sequence[NameChange]) -> None:
        """Note that holders were looked up and marked; a name that changed again since then stays unlooked."""

    async def positions(self, documents: Sequence[str]) -> dict[str, str]:
        """Return the positions of the records that exist."""
