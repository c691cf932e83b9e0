"""Names of entities in memory, for finding them by a part."""

import threading
from collections.abc import Collection, Iterable
from typing import NamedTuple

from pipeline.backends.graph_terms import ENTITY_PREFIX


class NameTriple(NamedTuple):
    """A label or alias triple of one class graph; IRIs as text."""

    graph: str
    subject: str
    predicate: str
    name: str


class NameList:
    """All label and alias triples, searched by a part of the name, case folded. Safe between threads."""

    def __init__(self, triples: Iterable[NameTriple]) -> None:
        self._lock = threading.Lock()
        self._folded = {triple: triple.name.casefold() for triple in triples}

    def add(self, triples: Iterable[NameTriple]) -> None:
        """Add triples; known ones change nothing."""
        with self._lock:
            self._folded.update((triple, triple.name.casefold()) for triple in triples)

    def remove(self, triples: Iterable[NameTriple]) -> None:
        """Remove triples; missing ones are no error."""
        with self._lock:
            for triple in triples:
                self._folded.pop(triple, None)

    def entities(self) -> set[tuple[str, str]]:
        """Return (subject, name) of every entity."""
        with self._lock:
            return {(one.subject, one.name) for one in self._folded if one.subject.startswith(ENTITY_PREFIX)}

    def find(self, text: str, graphs: Collection[str] | None, limit: int) -> list[NameTriple]:
        """Return one triple for each (subject, name) that holds `text`, shortest name first."""
        wanted = text.casefold()
        with self._lock:
            hits = [
                triple
                for triple, folded in self._folded.items()
                if wanted in folded and (graphs is None or triple.graph in graphs)
            ]
        hits.sort(key=lambda triple: (len(triple.name), triple.name, triple.subject, triple))
        distinct = {(triple.name, triple.subject): triple for triple in reversed(hits)}
        return list(reversed(distinct.values()))[: max(limit, 0)]
