"""The knowledge graph, one per generation."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Protocol

from schemas.knowledge import Fact, Node


class Graph(Protocol):
    """Facts in named graphs per access class. One writer at a time per graph space.

    What a call changes of a document it changes whole or not at all; a plain triple stands while at
    least one fact node of its class supports it.
    """

    async def stage(self, document: str, facts_version: str, facts: Sequence[Fact]) -> None:
        """Add the facts of one version beside the live ones; staging again changes nothing."""

    async def collect(self, live: dict[str, str], revision: int) -> None:
        """For each document keep only the fact nodes of the version given ("" keeps none) and drop
        every plain triple that no fact node of its class supports. Remembers `revision` in the store."""

    async def revision(self) -> int | None:
        """Return the last revision remembered, or None when the store is durable on its own terms."""

    async def facts_about(self, nodes: Sequence[Node], access_classes: Sequence[str] | None, limit: int) -> list[Fact]:
        """Return facts with one of `nodes` as subject or object, in these classes (None: all),
        ordered by IRI. Facts of versions not yet live may be among them: the caller checks."""

    async def facts_of(self, documents: Sequence[str]) -> list[Fact]:
        """Return all facts of these documents, ordered by IRI."""

    async def missing(self, versions: Mapping[str, str]) -> set[str]:
        """Return those of the documents (keys of `versions`) of which no fact of the version given stands."""

    async def held(self, documents: Sequence[str]) -> set[str]:
        """Return those of the documents of which a fact stands, of whatever version."""

    async def find_entities(
        self, text: str, access_classes: Sequence[str] | None, limit: int
    ) -> list[tuple[Node, str]]:
        """Return (entity, name) pairs whose label or alias holds `text`, case folded, shortest name first."""

    async def names(self, limit: int) -> list[tuple[str, str]]:
        """Return (IRI, name) of each label or alias of an entity once, of all classes, at most `limit`, in no order."""

    async def naming(
        self, names: Sequence[tuple[str, str]], access_classes: Sequence[str] | None, each: int
    ) -> list[Fact]:
        """Return of each (entity's IRI, name) at most `each` label and `each` alias facts that say so, in these
        classes (None: all), ordered by IRI. Facts of versions not yet live may be among them: the caller checks."""

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
