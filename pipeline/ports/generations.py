"""Generations in the state store: their rows, how far a rebuild is, and which one was live when."""

from typing import Literal, Protocol

import msgspec

from pipeline.ports.chunk_index import ChunkIndex
from pipeline.ports.graph import Graph

Phase = Literal["reading", "filling", "partial", "complete"]


class Generation(msgspec.Struct, frozen=True, kw_only=True):
    """One set of indexes built with one set of versions."""

    name: str
    state: str = "building"
    """`building`, `live`, `retired`, or `pruning`: on its way out, nobody may read or write it any more."""
    created_at: str
    versions: dict[str, str] = msgspec.field(default_factory=dict)
    """What it was built with: mapping, analyzer, dictionary, embedder, ontology, patterns."""


class ReplayPlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a replay is asked to do."""

    into: Literal["switch", "new", "live"] = "switch"
    """`new`: a generation beside the live one; `switch`: the same, then promote it and prune the old ones; `live`:
    documents again into the live one."""
    start: str = msgspec.field(default="beginning", name="from")
    """`beginning`, a time (RFC 3339), or `topic:partition:offset`, several separated by commas."""
    collections: tuple[str, ...] = ()
    """`source/collection`; empty is all."""
    documents: tuple[str, ...] = ()
    """Into live only: these documents."""
    holding: tuple[str, ...] = ()
    """Into live only: documents whose text holds one of these words."""
    current: bool = False
    """Into live only: these are all that the running versions affect, so the generation counts as built with them."""


class Rebuild(msgspec.Struct, frozen=True, kw_only=True):
    """How a generation is being built; kept, so that any process can go on with it."""

    plan: ReplayPlan
    phase: Phase = "reading"
    """`reading` what its source still has, `filling` in the rest from the records, `complete`; or `partial`: only the
    collections of its plan are complete."""
    targets: dict[str, int] = {}
    """`topic:partition` to the offset that must be read; empty embedded."""
    filled: int = 0
    """Documents that the source did not supply, sent by reference from the records."""
    failure: str = ""
    """Why nobody goes on with it; empty while somebody does, or when it is done."""


class Promotion(msgspec.Struct, frozen=True):
    """A generation became live."""

    generation: str
    at: str
    """RFC 3339 UTC."""


class Standing(msgspec.Struct, frozen=True):
    """How much of the records a generation has."""

    records: int
    behind: int
    """Records whose version is not in every index of the generation."""
    relinks: int
    """Documents that are there and marked to be done again."""


class Behind(msgspec.Struct, frozen=True):
    """A document of which a generation lacks the newest version."""

    document: str
    position: str
    """Of its record."""


class Indexes(msgspec.Struct, frozen=True):
    """One generation's indexes, pinned: they are not removed while in use."""

    generation: str
    chunks: ChunkIndex
    graph: Graph


class GenerationRows(Protocol):
    """Each call is atomic and durable when it returns."""

    async def generations(self) -> list[Generation]:
        """Return all generations, oldest first; exactly one is `live` once one was promoted."""

    async def next_generation(self) -> str:
        """Return a name (g1, g2, ...) that no generation has or ever had."""

    async def create_generation(self, generation: Generation, rebuild: Rebuild | None = None) -> None:
        """Add a generation in state `building`, with the note of its rebuild; the same name again is no error."""

    async def promote(self, name: str, at: str = "", *, unless_older: bool = False) -> list[str]:
        """Make `name` live and the one before it `retired`, in one step, and note when. KeyError when unknown.

        With `unless_older` it is done only when no document has a newer version in the live generation;
        returned are the first ten such documents, so [] means done.
        """

    async def promotions(self) -> list[Promotion]:
        """Return what became live, newest first; a generation may be there several times, or be gone."""

    async def begin_prune(self, name: str) -> None:
        """Put a generation into state `pruning`, and forget its rebuild, so that nobody goes on with it; missing is no
        error. ValueError when live."""

    async def drop_generation(self, name: str) -> None:
        """Forget a generation with its manifests, names and marks; missing is no error. ValueError when live."""

    async def set_versions(self, name: str, versions: dict[str, str]) -> None:
        """Change what a generation counts as built with; missing is no error.

        Not the embedder, while other processes read: all vectors of a generation are of one model, which `embedder`
        may remember.
        """

    async def embedder(self, name: str) -> str | None:
        """Return the model of a generation's vectors; None when that is not known."""

    async def rebuild(self, name: str) -> Rebuild | None:
        """Return how a generation is being built; None when nobody noted it, or it is gone."""

    async def save_rebuild(self, name: str, rebuild: Rebuild) -> None:
        """Note how a generation is being built; for a missing one, or one in state `pruning`, nothing is kept."""

    async def standing(self, name: str) -> Standing:
        """Count; the whole table is read, so ask now and then."""

    async def behind(self, name: str, *, prefix: str = "", after: str = "", limit: int = 1000) -> list[Behind]:
        """Return documents with this prefix and key > `after`, in key order, that lack their newest version.

        Those whose record is newer than the committed manifest, or whose manifest was not collected or is
        at stage text. Marks for relinking and events that are not announced do not count.
        """
