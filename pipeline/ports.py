"""The ports: what the core asks of a log, a state store, indexes and models.

Every sentence on ordering, idempotence and missing keys below has a test in tests/contracts that
each backend passes. No port shares a transaction with another. All raise BackendUnavailable when
the thing behind them does not answer, and nothing else that is not named here.
"""

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

import msgspec

from schemas.access import AccessRule
from schemas.change_event import RawEvent
from schemas.document import Analysis, IndexedChunk, Manifest
from schemas.knowledge import Fact, Mention, Node
from schemas.outcome import DeadLetter, Outcome, OutcomeName
from schemas.record import Record

# ------------------------------------------------------------------ change log


class LoggedEvent(msgspec.Struct, frozen=True):
    """An event as the log keeps it. `offset` starts at 1 and grows by arrival."""

    offset: int
    raw: RawEvent
    received_at: str


class ChangeLog(Protocol):
    """Append-only, replayable. On the stack this is Kafka and the port is not used by the agents."""

    async def append(self, events: Sequence[RawEvent], received_at: str) -> list[int]:
        """Append all or none, durably, in order; return their offsets. Appending nothing returns []."""

    async def read(self, after: int, limit: int) -> list[LoggedEvent]:
        """Return at most `limit` events with offset > `after`, in offset order; [] at the end."""

    async def end(self) -> int:
        """Return the offset of the last event, 0 when empty."""


# ------------------------------------------------------------------ state store


class Advance(msgspec.Struct, frozen=True):
    """What happened to a record offered to the state store."""

    result: str
    """`advanced`, `redelivered` (this very event already won), `duplicate`, or `superseded`."""
    record: Record
    """The record that stands now."""


class CollectionState(msgspec.Struct, frozen=True):
    """What is remembered of a source collection."""

    source: str
    collection: str
    positioned: bool
    floor: str
    """Events below this position are superseded (truncate); empty when never truncated."""


class Pending(msgspec.Struct, frozen=True):
    """A document whose indexes are behind its record, in one generation."""

    document: str
    position: str
    fresh: bool
    """True when it has no applied version (so it may be staged as text first)."""
    stage: str
    """Stage of the committed manifest: ``, `text` or `full`."""


class State(Protocol):
    """Records, positions, manifests, names, outcomes, dead letters, offsets, generations.

    Each call is atomic and durable when it returns. Positions compare as plain byte strings.
    """

    # records
    async def collection(self, source: str, collection: str, *, positioned: bool) -> CollectionState:
        """Return the collection's row; the first call fixes `positioned` for good."""

    async def collections(self) -> list[CollectionState]:
        """Return all rows, ordered by source and collection."""

    async def set_floor(self, source: str, collection: str, floor: str) -> None:
        """Raise the floor; a lower one than there is changes nothing."""

    async def advance(self, records: Sequence[Record]) -> list[Advance]:
        """Offer records in order; each wins only over a smaller position (compare-and-set).

        Equal position: `redelivered` when its origin is among the row's or already announced under
        that position as the winner, else `duplicate`. A winner takes over the loser's unannounced
        origins. Positions below the collection's floor are `superseded`.
        """

    async def records(self, documents: Sequence[str]) -> dict[str, Record]:
        """Return the rows that exist; missing keys are absent."""

    def scan_records(self, prefix: str = "") -> AsyncIterator[Record]:
        """Yield all records (deletes too) whose key starts with `prefix`, in byte order of the key."""

    # manifests, per generation
    async def pending(self, generation: str, *, after: str = "", limit: int = 1000) -> list[Pending]:
        """Return documents with key > `after`, in key order, that need work in this generation.

        They are those whose record is newer than both the committed manifest and the position that
        ended as a dead letter, whose manifest was not collected, whose stage is `text`, or that are
        marked for relinking.
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

    async def uncollect_after(self, generation: str, revision: int) -> int:
        """Mark all manifests collected at a later revision as not collected; return how many."""

    async def revision(self, generation: str) -> int:
        """Return the highest revision that `collected` saw, 0 at first."""

    def scan_manifests(self, generation: str) -> AsyncIterator[Manifest]:
        """Yield all committed manifests in byte order of the key."""

    async def counts(self, generation: str) -> dict[str, int]:
        """Return `records`, `documents` (upserts committed), `text`, `full`, `uncollected`, `dead_letters`,
        `relinks` and one `outcome.<name>` per outcome."""

    # names: which normalized names records declare, for linking mentions in other documents
    async def replace_names(
        self, generation: str, document: str, names: Sequence["DeclaredName"]
    ) -> list[str]:
        """Replace what `document` declares; return the names (texts) whose set of entities changed."""

    async def declared_names(self, generation: str) -> list["DeclaredName"]:
        """Return every distinct (name, entity) with one declaring document, ordered by name and entity."""

    async def mark_relinks(self, generation: str, documents: Sequence[str]) -> None:
        """Mark documents for relinking; marking twice is marking once."""

    async def clear_relinks(self, generation: str, documents: Sequence[str]) -> None:
        """Remove marks; missing ones are no error."""

    # outcomes and dead letters
    async def announce(self, outcomes: Sequence[Outcome]) -> None:
        """Record outcomes by event id; a repeated announcement changes nothing, except that a
        `dead_letter` may become something else after a retry. Clears the origins of the record."""

    async def outcomes(self, events: Sequence[str]) -> dict[str, OutcomeName]:
        """Return the outcomes known; missing ids are absent."""

    async def bury(self, letters: Sequence[DeadLetter], generation: str = "") -> None:
        """Keep dead letters (same id: attempts + 1, unresolved again) and announce `dead_letter`.

        With a generation and a position, that position no longer counts as pending there.
        """

    async def dead_letters(
        self, *, after: str = "", limit: int = 100, resolved: bool = False
    ) -> list[DeadLetter]:
        """Return letters with id > `after`, ordered by id."""

    async def dead_letter(self, letter: str) -> DeadLetter | None:
        """Return one, or None."""

    async def dead_positions(self, documents: Sequence[str]) -> dict[str, list[DeadLetter]]:
        """Return the unresolved letters of these documents."""

    async def resolve(self, letters: Sequence[str], generation: str = "") -> None:
        """Mark letters resolved; with a generation their documents count as pending there again."""

    # offsets, access classes, generations
    async def offset(self, consumer: str) -> int:
        """Return the committed offset, 0 when there is none."""

    async def commit_offset(self, consumer: str, offset: int) -> None:
        """Raise the offset; a lower one changes nothing."""

    async def remember_classes(self, rules: Sequence[AccessRule]) -> None:
        """Keep rules by their access class; known ones are no error."""

    async def access_classes(self) -> dict[str, AccessRule]:
        """Return all known classes."""

    async def generations(self) -> list["Generation"]:
        """Return all generations, oldest first; exactly one is `live` once one was promoted."""

    async def create_generation(self, generation: "Generation") -> None:
        """Add a generation in state `building`; the same name again is no error."""

    async def promote(self, name: str) -> None:
        """Make `name` live and the one before it `retired`, in one step. KeyError when unknown."""

    async def drop_generation(self, name: str) -> None:
        """Forget a generation that is not live, with its manifests, names and marks; missing is no error."""


class DeclaredName(msgspec.Struct, frozen=True, order=True):
    """A normalized name that a record declares for an entity."""

    name: str
    """As `pipeline.text.normalize.name_key` gives it."""
    family: str
    key: str
    """With the family: the entity."""
    document: str = ""


class Generation(msgspec.Struct, frozen=True, kw_only=True):
    """One set of indexes built with one set of versions."""

    name: str
    state: str = "building"
    """`building`, `live` or `retired`."""
    created_at: str
    versions: dict[str, str] = msgspec.field(default_factory=dict)
    """What it was built with: mapping, analyzer, dictionary, embedder, ontology, patterns."""


# ------------------------------------------------------------------ caches


class Cache(Protocol):
    """Analyses and embeddings by content hash and version; losing it costs time, never truth."""

    async def get(self, kind: str, keys: Sequence[str]) -> dict[str, bytes]:
        """Return what is there; missing keys are absent."""

    async def put(self, kind: str, items: dict[str, bytes]) -> None:
        """Keep items; existing keys are overwritten."""


# ------------------------------------------------------------------ chunk index (one per generation)


class ChunkFilter(msgspec.Struct, frozen=True):
    """What a search may return. Empty members do not filter."""

    access_classes: tuple[str, ...] | None = None
    """None: everything (the asker's groups hold `*`). An empty tuple matches nothing."""
    sources: tuple[str, ...] = ()
    collections: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    updated_from: str = ""
    """Inclusive, RFC 3339 UTC."""
    updated_to: str = ""
    """Exclusive."""
    fields: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    """Field name to the values (as text) of which one must match."""


class IndexHit(msgspec.Struct, frozen=True):
    """A chunk found; the caller checks it against the manifest before showing it."""

    id: str
    document: str
    score: float
    """Higher is better; comparable only within one list."""


class LexicalQuery(msgspec.Struct, frozen=True):
    """Analyzed query terms; any of them may match."""

    terms: tuple[str, ...]
    bigrams: tuple[str, ...] = ()
    identifiers: tuple[str, ...] = ()


class ChunkIndex(Protocol):
    """Text, terms and vectors of chunks. Knows nothing of positions: the manifest decides what is live."""

    async def stage(self, chunks: Sequence[IndexedChunk]) -> None:
        """Write or overwrite chunks by id; all of the batch are durable and searchable on return.

        A chunk given without a vector keeps the vector that is there only if its model is the same.
        """

    async def collect(self, live: dict[str, tuple[str, ...]], revision: int) -> None:
        """For each document (key of `live`) remove all its chunks but the ids given; () removes all.

        Exact on the document key (`1-1` leaves `1-12`), without limit on how many are removed.
        Remembers `revision` durably, in the same step.
        """

    async def revision(self) -> int | None:
        """Return the last revision remembered, or None when the store is durable on its own terms."""

    async def lexical(self, query: LexicalQuery, where: ChunkFilter, limit: int) -> list[IndexHit]:
        """Return the best by BM25 over title terms, terms, bigrams and identifiers; ties by id."""

    async def dense(self, vector: bytes, where: ChunkFilter, limit: int) -> list[IndexHit]:
        """Return the nearest by cosine among chunks that have a vector; ties by id."""

    async def get(self, ids: Sequence[str]) -> dict[str, IndexedChunk]:
        """Return chunks by id; missing ids are absent."""

    async def documents_with(self, bigrams: Sequence[str], limit: int) -> list[str]:
        """Return keys of documents with a chunk that holds all these bigrams, in key order."""

    async def count(self) -> int:
        """Return how many chunks there are."""

    def scan(self) -> AsyncIterator[IndexedChunk]:
        """Yield all chunks in byte order of the id."""

    async def drop(self) -> None:
        """Remove this generation's index and all its files."""

    async def close(self) -> None:
        """Let go of files and connections; idempotent."""


# ------------------------------------------------------------------ knowledge graph (one per generation)


class Graph(Protocol):
    """Facts in named graphs per access class. One writer at a time per graph space.

    For each document one update request; a plain triple stands while at least one fact node of its
    class supports it.
    """

    async def stage(self, document: str, facts_version: str, facts: Sequence[Fact]) -> None:
        """Add the facts of one version beside the live ones; staging again changes nothing."""

    async def collect(self, live: dict[str, str], revision: int) -> None:
        """For each document keep only the fact nodes of the version given ("" keeps none) and drop
        every plain triple that no fact node of its class supports. Remembers `revision` in the store."""

    async def revision(self) -> int | None:
        """Return the last revision remembered, or None when the store is durable on its own terms."""

    async def facts_about(
        self, nodes: Sequence[Node], access_classes: Sequence[str] | None, limit: int
    ) -> list[Fact]:
        """Return facts with one of `nodes` as subject or object, in these classes (None: all),
        ordered by IRI. Facts of versions not yet live may be among them: the caller checks."""

    async def facts_of(self, documents: Sequence[str]) -> list[Fact]:
        """Return all facts of these documents, ordered by IRI."""

    async def find_entities(
        self, text: str, access_classes: Sequence[str] | None, limit: int
    ) -> list[tuple[Node, str]]:
        """Return (entity, name) pairs whose label or alias holds `text`, case folded, shortest name first."""

    def scan(self) -> AsyncIterator[Fact]:
        """Yield all facts ordered by IRI."""

    async def triples(self) -> list[tuple[str, str, str, str]]:
        """Return every plain triple as (class, subject, predicate, object) in N-Triples form, ordered."""

    async def query(
        self,
        sparql: str,
        access_classes: Sequence[str] | None,
        *,
        timeout_s: float,
        accept: str,
        max_bytes: int,
    ) -> bytes:
        """Run a read-only query that a person or model wrote, over the union of the classes' graphs.

        Returns the serialized result (`accept`: one of SPARQL JSON, CSV, TSV, XML, Turtle, N-Triples).
        Raises QueryTimeout (the work is stopped, not left running), InvalidQuery for updates, SERVICE,
        LOAD, FROM, a syntax error, or a result over `max_bytes`.
        """

    async def drop(self) -> None:
        """Remove this generation's graphs and files."""

    async def close(self) -> None:
        """Let go of files, processes and connections; idempotent."""


# ------------------------------------------------------------------ models


class Analyzer(Protocol):
    """Japanese analysis off the event loop. A pure function of (text, version)."""

    version: str

    async def tokens(self, texts: Sequence[str]) -> list[Analysis]:
        """Sudachi level: terms, bigrams, identifiers; `mentions` holds identifiers only. Fast (ms)."""

    async def mentions(self, texts: Sequence[str]) -> list[tuple[Mention, ...]]:
        """GiNZA level: candidate mentions besides identifiers. Slow (about 75 ms per 400 characters)."""

    async def close(self) -> None:
        """Stop the workers; idempotent."""


class Embedder(Protocol):
    """Dense vectors off the event loop. A pure function of (text, model)."""

    model: str
    """Name and version of the model; empty when there is none and dense search is off."""
    dimensions: int

    async def passages(self, texts: Sequence[str]) -> list[bytes]:
        """Return little-endian float32 unit vectors, one per text. Any text that the steps let pass works."""

    async def query(self, text: str) -> bytes:
        """Return the vector of a question."""

    async def close(self) -> None:
        """Stop the workers; idempotent."""
