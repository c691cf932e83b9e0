"""The digest: every store read back, one hash per part. Specification: ops/decisions/digest.md."""

import hashlib
from collections.abc import AsyncIterator, Iterable
from typing import Any

import msgspec

from pipeline.ports.chunk_index import ChunkIndex
from pipeline.ports.graph import Graph
from pipeline.ports.state import State
from pipeline.steps.iris import node_iri, term_iri
from schemas.document import IndexedChunk, Manifest
from schemas.knowledge import SAME_AS, Fact
from schemas.outcome import DeadLetter
from schemas.position import as_sent
from schemas.record import Record


class _Part:
    """One hash over canonical JSON lines (members sorted, no white space, UTF-8)."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def add(self, value: Any) -> None:
        self._hash.update(msgspec.json.encode(value, order="deterministic"))
        self._hash.update(b"\n")

    def hexdigest(self) -> str:
        return self._hash.hexdigest()


async def digest(state: State, generation: str, chunks: ChunkIndex, graph: Graph) -> dict[str, str]:
    """Return one SHA-256 per part (`records`, `manifests`, `chunks`, `facts`, `triples`, `entities`,
    `names`, `dead_letters`) and `all` over them. The caller makes sure that nothing is under way."""
    parts = {
        "records": await _hashed(state.scan_records(), _record),
        "manifests": await _hashed(state.scan_manifests(generation), _manifest),
        "chunks": await _hashed(chunks.scan(), _chunk),
        "facts": await _hashed(graph.scan(), _fact),
        "triples": _lines(await graph.triples()),
        "entities": _lines(components([fact async for fact in graph.scan() if fact.predicate == SAME_AS])),
        "names": _lines([(n.name, n.family, n.key) for n in await state.declared_names(generation)]),
        "dead_letters": _lines(sorted([_letter(letter) async for letter in _letters(state)])),
    }
    return parts | {"all": _lines(sorted(parts.items()))}


async def _hashed(items: AsyncIterator[Any], canonical: Any) -> str:
    part = _Part()
    async for item in items:
        part.add(canonical(item))
    return part.hexdigest()


def _lines(items: Iterable[Any]) -> str:
    part = _Part()
    for item in items:
        part.add(item)
    return part.hexdigest()


def _record(record: Record) -> Any:
    position = as_sent(record.position)  # how often a late version filled it depends on the order of arrival
    return [record.document, record.op, position, record.version, record.occurred_at, record.columns]


def _manifest(manifest: Manifest) -> Any:
    return msgspec.structs.replace(manifest, position=as_sent(manifest.position))


def _chunk(chunk: IndexedChunk) -> Any:
    # Of the vectors only presence, number and model: floats may differ between machines and engines.
    there = b"1" if chunk.vector is not None else None
    # None of sentences: they come later, when nothing else waits.
    return msgspec.structs.replace(chunk, vector=there, sentence_vectors=b"")


def _fact(fact: Fact) -> Any:
    return fact


def _letter(letter: DeadLetter) -> Any:
    return (letter.document, as_sent(letter.position), letter.code, hashlib.sha256(letter.payload).hexdigest())


async def _letters(state: State) -> AsyncIterator[DeadLetter]:
    after = ""
    while page := await state.dead_letters(after=after, limit=500):
        for letter in page:
            yield letter
        after = page[-1].id


def components(same_as: Iterable[Fact]) -> list[list[str]]:
    """Return the connected components of `same_as`, each ordered, ordered by their smallest member."""
    root: dict[str, str] = {}

    def find(node: str) -> str:
        while root.setdefault(node, node) != node:
            root[node] = node = root[root[node]]
        return node

    for fact in same_as:
        a, b = find(node_iri(fact.subject)), find(term_iri(fact.object) or "")
        root[max(a, b)] = min(a, b)
    groups: dict[str, list[str]] = {}
    for node in sorted(root):
        groups.setdefault(find(node), []).append(node)
    return [groups[key] for key in sorted(groups)]
