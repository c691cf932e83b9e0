"""Documents that name themselves by an asked identifier: all their passages are about it, though one holds it."""

import asyncio
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice, product, zip_longest
from typing import TypeVar

import msgspec

from api.retrieval.beside import beside
from api.retrieval.filters import Where
from api.retrieval.lexical import joined
from api.retrieval.question import AnalyzedQuestion, beside_numbers
from api.retrieval.reader import Reader
from pipeline.ports.chunk_index import IndexHit
from pipeline.text.naming import BEGINNING, names_itself, years_before
from pipeline.text.normalize import fold
from schemas.change_event import document_key, split_document_key
from schemas.document import Manifest, Token

MOST_DOCUMENTS = 8
"""Documents of which further passages are looked for."""
_READ = 16
"""Beginnings that are read."""
_KEYS = 400
"""Keys that are looked up."""
_ENDINGS = ("", ".md", ".markdown", ".txt")
"""Of keys: a file of a folder that was published has its path as its key."""
_BUDGET_S = 0.5
_QUESTION = 2_000
"""Characters of a question that are read again for its dates."""

T = TypeVar("T")
Holders = Mapping[str, Sequence[IndexHit]]
"""Identifier to the chunks that hold it."""


class Naming(msgspec.Struct, frozen=True, kw_only=True):
    """The documents that identifiers of a question name, and their best passages for the rest of the question."""

    documents: Mapping[str, tuple[str, ...]] = {}
    """By identifier; those that it does not name are absent."""
    rest: AnalyzedQuestion | None = None
    """The question without its numbers: what decides among passages that are all about them. None where that is
    nothing, and without documents."""
    lexical: Sequence[IndexHit] = ()
    dense: Sequence[IndexHit] = ()
    first: Sequence[IndexHit] = ()
    """The first passages of those documents of which nothing else was found."""


class _Beginning(msgspec.Struct, frozen=True):
    """A text in which a document may name itself."""

    identifier: str
    document: str
    text: str


async def find_named(
    reader: Reader, question: AnalyzedQuestion, where: Where, holders: Holders, found: Iterable[IndexHit], limit: int
) -> Naming:
    """Return the documents that the question's identifiers name. Of a bare identifier that is nothing where passages
    hold it, else the documents that have it as their key.

    `found`: hits whose documents' keys are looked at, too. Past its time it returns nothing, with a note.
    """
    if not holders or (all(holders.values()) and not question.lexical.terms):
        return Naming()
    try:
        async with asyncio.timeout(_BUDGET_S):
            manifests = await _possible(reader, question, where, holders, found)
            begun = await _beginnings(reader, holders, manifests)
            keyed = _keyed(manifests, holders)
            if not begun and not any(keyed.values()):
                return Naming()
            documents, rest = await _decided(reader, question, holders, keyed, begun)
            kept = {key: manifests[key] for key in dict.fromkeys(chain(*documents.values()))}
            return await _passages(reader, where, Naming(documents=documents, rest=rest), kept, holders, limit)
    except TimeoutError:
        reader.notes.append(
            f"which documents are numbered {', '.join(holders)} was not found out within {_BUDGET_S:g} s: "
            "only passages that hold it stand before the others"
        )
        return Naming()


def merged(hits: Sequence[IndexHit], more: Sequence[IndexHit]) -> list[IndexHit]:
    """Return both lists as one, best first, ties by id."""
    return sorted(joined(hits, more), key=lambda hit: (-hit.score, hit.id)) if more else list(hits)


async def _possible(
    reader: Reader, question: AnalyzedQuestion, where: Where, holders: Holders, found: Iterable[IndexHit]
) -> dict[str, Manifest]:
    """Return the documents that have passages without an identifier, and hold it or have it as their key."""
    typed = [mention.surface for mention in question.analysis.mentions if mention.key in holders]
    forms = dict.fromkeys(form for one in (*typed, *holders) for form in (one, one.upper()))
    names = [form + ending for ending in _ENDINGS for form in forms]
    collections = [
        one
        for one in await reader.runtime.state.collections()
        if (not where.sources or one.source in where.sources)
        and (not where.collections or one.collection in where.collections)
    ]
    keys = {document_key(c.source, c.collection, name) for name, c in islice(product(names, collections), _KEYS)}
    holding = {hit.document for hit in chain(*holders.values())}
    near = {hit.document for hit in found} - keys - holding
    keys |= holding | {key for key in near if not holders.keys().isdisjoint(_own_names(key))}
    manifests = await reader.manifests(keys)
    return {
        key: one
        for key, one in manifests.items()
        if (len(one.chunks) > 1 or (one.chunks and key not in holding)) and where.matches(one, reader.asker)
    }


def _keyed(documents: Iterable[str], holders: Holders) -> dict[str, list[str]]:
    """Return for each identifier the documents that have it as their key, in key order."""
    keyed: dict[str, list[str]] = {name: [] for name in holders}
    for key in sorted(documents):
        for name in _own_names(key) & holders.keys():
            keyed[name].append(key)
    return keyed


def _own_names(document: str) -> set[str]:
    """Return the key, or the file's name where it is a path, folded: with its extension and without."""
    name = fold(split_document_key(document)[2].rstrip("/").rpartition("/")[2])[0]
    stem, _, extension = name.rpartition(".")
    return {name, stem} if stem and extension[:1].isalpha() else {name}  # 1.2 is another version than 1.2.3


async def _beginnings(reader: Reader, holders: Holders, manifests: Mapping[str, Manifest]) -> list[_Beginning]:
    """Read the texts that hold an identifier where a document begins. Of one in the title every passage holds it."""
    starts = {ref.id: ref.start for one in manifests.values() for ref in one.chunks if ref.start < BEGINNING}

    def likely(name: str, hits: Iterable[IndexHit]) -> Iterator[tuple[str, IndexHit]]:
        whole = re.compile(rf"(?<![0-9a-z_-]){re.escape(name)}(?![0-9a-z_-])")  # F-40 is not in F-401
        for hit in hits:
            if hit.id in starts and not whole.search(fold(manifests[hit.document].title)[0]):
                yield name, hit

    chosen = list(islice(_in_turn(likely(name, hits) for name, hits in holders.items()), _READ))
    texts = await reader.indexes.chunks.texts([hit.id for _, hit in chosen]) if chosen else {}
    return [
        _Beginning(name, hit.document, texts[hit.id].text[: BEGINNING - starts[hit.id]])
        for name, hit in chosen
        if hit.id in texts
    ]


def _in_turn(lists: Iterable[Iterable[T]]) -> Iterator[T]:
    """Yield the first of each list, then the second of each: no list takes all places."""
    for some in zip_longest(*lists):
        yield from (one for one in some if one is not None)


async def _decided(
    reader: Reader,
    question: AnalyzedQuestion,
    holders: Holders,
    keyed: Mapping[str, Sequence[str]],
    begun: Sequence[_Beginning],
) -> tuple[dict[str, tuple[str, ...]], AnalyzedQuestion | None]:
    """Return which documents are meant by each identifier, and the question without these."""
    asked = question.text[:_QUESTION]
    typed, *placed = await reader.runtime.analyzer.places([asked, *(one.text for one in begun)])
    rest = beside_numbers(question, typed)
    if not rest.lexical.terms:
        return {name: tuple(keys[:MOST_DOCUMENTS]) for name, keys in keyed.items() if keys and not holders[name]}, None
    said: dict[str, list[str]] = {name: list(keys) for name, keys in keyed.items()}
    for one, tokens in zip(begun, placed, strict=True):
        own = names_itself(one.text, tokens, one.identifier)
        if own and _may_be(years_before(one.text, tokens, own), _years_asked(asked, typed, one.identifier)):
            said[one.identifier].append(one.document)
    kept = set(islice(dict.fromkeys(_in_turn(said.values())), MOST_DOCUMENTS))
    documents = {n: its for n, keys in said.items() if (its := tuple(k for k in dict.fromkeys(keys) if k in kept))}
    return documents, rest if documents else None


async def _passages(
    reader: Reader, where: Where, named: Naming, manifests: Mapping[str, Manifest], holders: Holders, limit: int
) -> Naming:
    """Look what the named documents hold of the rest of the question."""
    chunks, rest = reader.indexes.chunks, named.rest
    lexical: list[IndexHit] = []
    dense: list[IndexHit] = []
    if rest:
        within = where.chunk_filter(reader.classes, tuple(sorted(manifests)))
        lists = [chunks.lexical(rest.lexical, within, limit)]
        if rest.vector:
            lists.append(chunks.dense(rest.vector, within, limit))
        lexical, *more = await beside(*lists)
        dense = more[0] if more else []
    seen = {hit.document for hit in chain(lexical, dense, *holders.values())}
    first = [IndexHit(one.chunks[0].id, key, 0.0) for key, one in manifests.items() if key not in seen]
    return msgspec.structs.replace(named, lexical=lexical, dense=dense, first=first)


def _years_asked(text: str, tokens: Sequence[Token], name: str) -> frozenset[str]:
    asked = (token for token in tokens if token.kind == "identifier" and token.term == name)
    return frozenset().union(*(years_before(text, tokens, token) for token in asked))


def _may_be(years: frozenset[str], asked: frozenset[str]) -> bool:
    """Say whether a number of these years is the asked one: with each year counting begins anew."""
    return not years or not asked or not years.isdisjoint(asked)
