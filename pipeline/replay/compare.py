"""Compare two generations: both read back side by side, document by document, what differs put into classes.

Memory stays bounded: a page of manifests of each, and what the indexes hold of that page. Only what manifests name is
compared, since nothing else can be read; what waits to be collected is no difference.
"""

import struct
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from operator import mul
from typing import Any

import msgspec

from pipeline.ports.generations import Indexes
from pipeline.ports.replays import Comparison, Difference
from pipeline.ports.state import State
from schemas.document import IndexedChunk, Manifest
from schemas.knowledge import Fact

PAGE = 64
"""Documents compared at once."""
CHUNKS_AT_ONCE = 500
EXAMPLES = 5
SAME_VECTOR = 0.9999
"""Cosine: the same model on another machine gives other last digits."""

Pair = tuple[Manifest | None, Manifest | None]


class Differences:
    """Counts by class, with the first few that differ."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._examples: dict[str, list[str]] = {}

    def add(self, kind: str, example: str, number: int = 1) -> None:
        """Note a difference."""
        self._counts[kind] += number
        examples = self._examples.setdefault(kind, [])
        if len(examples) < EXAMPLES and example not in examples:
            examples.append(example)

    def result(self) -> dict[str, Difference]:
        """Return them, the most frequent first."""
        return {
            kind: Difference(count=count, examples=tuple(self._examples[kind]))
            for kind, count in self._counts.most_common()
        }


async def compare(state: State, first: Indexes, second: Indexes, prefixes: tuple[str, ...] = ()) -> Comparison:
    """Compare; with prefixes only documents whose key starts with one of them."""
    comparing = _Comparing(first, second)
    page: list[Pair] = []
    async for pair in _merged(state.scan_manifests(first.generation), state.scan_manifests(second.generation)):
        if prefixes and not _key(pair).startswith(prefixes):
            continue
        page.append(pair)
        if len(page) >= PAGE:
            await comparing.page(page)
            page = []
    await comparing.page(page)
    if not prefixes:
        await comparing.names(state)
    return comparing.result()


async def _merged(one: AsyncIterator[Manifest], other: AsyncIterator[Manifest]) -> AsyncIterator[Pair]:
    """Walk both in order of the key; what is missing in one is None."""
    left, right = await anext(one, None), await anext(other, None)
    while left is not None or right is not None:
        key = min(m.document for m in (left, right) if m is not None)
        pair = (
            left if left is not None and left.document == key else None,
            right if right is not None and right.document == key else None,
        )
        yield pair
        if pair[0] is not None:
            left = await anext(one, None)
        if pair[1] is not None:
            right = await anext(other, None)


class _Comparing:
    def __init__(self, first: Indexes, second: Indexes) -> None:
        self._indexes = (first, second)
        self._only = tuple(f"only in {indexes.generation}" for indexes in self._indexes)
        self._documents = 0
        self._records, self._decisions = Differences(), Differences()
        self._chunks, self._facts = Differences(), Differences()

    def result(self) -> Comparison:
        return Comparison(
            first=self._indexes[0].generation,
            second=self._indexes[1].generation,
            documents=self._documents,
            records=self._records.result(),
            decisions=self._decisions.result(),
            chunks=self._chunks.result(),
            facts=self._facts.result(),
        )

    async def page(self, pairs: Sequence[Pair]) -> None:
        both = []
        for pair in pairs:
            self._documents += 1
            if self._same_record(pair):
                both.append(pair)
        chunks = [await _chunks_of(self._indexes[n], _side(both, n)) for n in (0, 1)]
        facts = [await _facts_of(self._indexes[n], _side(both, n)) for n in (0, 1)]
        for one, other in both:
            if one is not None and other is not None:
                self._compare_chunks(one, other, chunks)
                self._compare_facts(facts[0].get(one.document, []), facts[1].get(one.document, []))

    # ---------------------------------------------------------------- records and decisions

    def _same_record(self, pair: Pair) -> bool:
        """Note how the record differs; True when both have the document at one version, so that the rest compares."""
        one, other = pair
        if one is None or other is None:
            self._records.add(self._only[0] if other is None else self._only[1], _key(pair))
            return False
        if one.position != other.position:
            self._records.add("version", one.document)
            return False
        if one.op != other.op:
            # The same record, refused by one generation's mapping or limits.
            self._decisions.add("withdrawn", one.document)
            return False
        for kind, get in _ATTRIBUTES.items():
            if get(one) != get(other):
                self._records.add(kind, one.document)
        return one.op == "upsert"

    async def names(self, state: State) -> None:
        """Compare what names declare; they fit into memory, since each worker has them there."""
        declared = [
            {(n.name, n.family, n.key) for n in await state.declared_names(indexes.generation)}
            for indexes in self._indexes
        ]
        for kind, more in zip(self._only, (declared[0] - declared[1], declared[1] - declared[0]), strict=True):
            for name, family, _ in sorted(more):
                self._decisions.add(f"names {kind}", f"{name} ({family})")

    # ---------------------------------------------------------------- chunks

    def _compare_chunks(self, one: Manifest, other: Manifest, chunks: Sequence[dict[str, IndexedChunk]]) -> None:
        refs = [{ref.id: (ref.start, ref.end) for ref in m.chunks} for m in (one, other)]
        for n in (0, 1):
            if more := refs[n].keys() - refs[1 - n].keys():
                self._chunks.add(self._only[n], one.document, len(more))
        for name in refs[0].keys() & refs[1].keys():
            if refs[0][name] != refs[1][name]:
                self._chunks.add("offsets", one.document)
        for n, manifest in enumerate((one, other)):
            missing = [ref.id for ref in manifest.chunks if ref.id not in chunks[n]]
            if missing:
                self._chunks.add(f"missing in the index of {self._indexes[n].generation}", one.document, len(missing))
        for name in refs[0].keys() & refs[1].keys() & chunks[0].keys() & chunks[1].keys():
            for kind in self._chunk_kinds(chunks[0][name], chunks[1][name]):
                self._chunks.add(kind, one.document)

    def _chunk_kinds(self, one: IndexedChunk, other: IndexedChunk) -> Iterable[str]:
        if (one.analysis.terms, one.analysis.identifiers, one.title_terms, one.analysis.bigrams) != (
            other.analysis.terms,
            other.analysis.identifiers,
            other.title_terms,
            other.analysis.bigrams,
        ):
            yield "terms"
        if one.access_class != other.access_class:
            yield "access"
        if (one.fields, one.type, one.updated_at) != (other.fields, other.type, other.updated_at):
            yield "fields"
        if (one.vector is None) != (other.vector is None):
            yield f"vector missing in {self._indexes[0 if one.vector is None else 1].generation}"
        elif one.vector_model != other.vector_model:
            yield "vector model"
        elif one.vector is not None and other.vector is not None and not _same_vector(one.vector, other.vector):
            yield "vector"
        found = (len(one.sentence_vectors), len(other.sentence_vectors))
        if all(found) and found[0] != found[1]:  # where one has none, they come later
            yield "sentence vectors"

    # ---------------------------------------------------------------- facts

    def _compare_facts(self, one: list[Fact], other: list[Fact]) -> None:
        said = [Counter(map(_statement, facts)) for facts in (one, other)]
        for n in (0, 1):
            for statement, number in (said[n] - said[1 - n]).items():
                self._facts.add(f"{self._only[n]}: {statement[1]}", statement[3], number)
        shared = said[0] & said[1]
        evidence = [Counter(_evidence(fact) for fact in facts if _statement(fact) in shared) for facts in (one, other)]
        for (statement, *_), number in (evidence[0] - evidence[1]).items():
            self._facts.add(f"evidence: {statement[1]}", statement[3], number)


_ATTRIBUTES: dict[str, Callable[[Manifest], Any]] = {
    "access": lambda m: m.access,
    "fields": lambda m: (m.fields, m.restricted_fields, m.updated_at),
    "title": lambda m: m.title,
    "type": lambda m: m.type,
    "stage": lambda m: m.stage,
}


def _key(pair: Pair) -> str:
    return next(m.document for m in pair if m is not None)


def _side(pairs: Sequence[Pair], n: int) -> list[Manifest]:
    return [m for pair in pairs if (m := pair[n]) is not None]


async def _chunks_of(indexes: Indexes, manifests: Sequence[Manifest]) -> dict[str, IndexedChunk]:
    """Return the chunks that these manifests name, as the index has them."""
    found: dict[str, IndexedChunk] = {}
    ids = [ref.id for m in manifests for ref in m.chunks]
    for start in range(0, len(ids), CHUNKS_AT_ONCE):
        found |= await indexes.chunks.get(ids[start : start + CHUNKS_AT_ONCE])
    return found


async def _facts_of(indexes: Indexes, manifests: Sequence[Manifest]) -> dict[str, list[Fact]]:
    """Return the live facts by document."""
    live = {m.document: m.facts_version for m in manifests}
    found: dict[str, list[Fact]] = {}
    for fact in await indexes.graph.facts_of(list(live)) if live else []:
        if live[fact.document] == fact.facts_version:
            found.setdefault(fact.document, []).append(fact)
    return found


_Statement = tuple[str, str, str, str, str]


def _statement(fact: Fact) -> _Statement:
    """Return what a fact says, of which document, to whom."""
    terms = [msgspec.json.encode(_named(node)).decode() for node in (fact.subject, fact.object)]
    return terms[0], fact.predicate, terms[1], fact.document, fact.access_class


def _named(node: object) -> object:
    """Without the surface, which is how it was written."""
    plain = msgspec.to_builtins(node)
    return plain[:3] if plain[0] == "entity" else plain


def _evidence(fact: Fact) -> tuple[_Statement, object, str, float]:
    return _statement(fact), fact.span, fact.method, fact.confidence


def _same_vector(one: bytes, other: bytes) -> bool:
    if one == other:
        return True
    if len(one) != len(other):
        return False
    a, b = (struct.unpack(f"<{len(v) // 4}f", v) for v in (one, other))
    return bool(sum(map(mul, a, b)) >= SAME_VECTOR)
