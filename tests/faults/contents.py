"""What the stores hold, line by line: the digest's parts before hashing, to see where two of them differ."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec

from pipeline.ports.chunk_index import ChunkIndex
from pipeline.ports.graph import Graph
from pipeline.ports.state import State

Contents = dict[str, set[str]]
SHOWN = 6


async def contents(state: State, generation: str, chunks: ChunkIndex, graph: Graph) -> Contents:
    """Read every store back."""
    return {
        "records": {_line([r.document, r.op, r.position, r.columns]) async for r in state.scan_records()},
        "manifests": {_line(manifest) async for manifest in state.scan_manifests(generation)},
        "chunks": {_line(msgspec.structs.replace(c, vector=bool(c.vector))) async for c in chunks.scan()},
        "facts": {_line(fact) async for fact in graph.scan()},
        "triples": {_line(triple) for triple in await graph.triples()},
        "names": {_line([n.name, n.family, n.key]) for n in await state.declared_names(generation)},
        "dead_letters": {_line([d.document, d.position, d.code, d.payload[:80]]) async for d in letters(state)},
    }


async def letters(state: State) -> AsyncIterator[Any]:
    """Yield all open dead letters."""
    after = ""
    while page := await state.dead_letters(after=after, limit=500):
        for letter in page:
            yield letter
        after = page[-1].id


def differences(found: Contents, expected: Contents) -> str:
    """Say what is too much and what is missing, the first few of each part."""
    lines = []
    for part, wanted in expected.items():
        for sign, some in (("too much", found[part] - wanted), ("missing", wanted - found[part])):
            lines += [f"{part}: {len(some)} {sign}"] * bool(some)
            lines += [f"  {line[:700]}" for line in sorted(some)[:SHOWN]]
    return "\n".join(lines)


def _line(value: Any) -> str:
    return msgspec.json.encode(value, order="deterministic").decode()
