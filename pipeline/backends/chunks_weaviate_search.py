"""Searching in Weaviate: filters, the best hits with ties by id, documents that hold a name."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from weaviate.classes.query import Filter, MetadataQuery
from weaviate.collections import CollectionAsync
from weaviate.collections.classes.filters import _Filters

from pipeline.backends import chunks_weaviate_objects as at
from pipeline.backends.chunks_weaviate_tokens import BIGRAM, key, read_key, token
from pipeline.ports.chunk_index import ChunkFilter, IndexHit, LexicalQuery

Collection = CollectionAsync[dict[str, Any], None]

MOST = 10_000
"""Hits that Weaviate gives at most (QUERY_MAXIMUM_RESULTS)."""
MARGIN = 12
"""Hits asked for beyond the limit, to see whether it cuts through a tie."""
PAGE = 5_000
_KEYS = [at.CHUNK, at.DOCUMENT]


def condition(where: ChunkFilter) -> _Filters | None:
    """Return the filter, None when it lets everything pass."""
    parts: list[_Filters] = []
    listed = {at.SOURCE: where.sources, at.COLLECTION: where.collections, at.TYPE: where.types}
    if where.access_classes is not None:
        listed[at.ACCESS_CLASS] = where.access_classes
    for name, wanted in {**listed, at.DOCUMENT: where.documents}.items():
        if wanted:
            parts.append(Filter.by_property(name).contains_any([key(value) for value in wanted]))
    if where.updated_from:
        parts.append(Filter.by_property(at.UPDATED_AT).greater_or_equal(where.updated_from))
    if where.updated_to:
        parts.append(Filter.by_property(at.UPDATED_AT).less_than(where.updated_to))
    for name, values in where.fields.items():
        parts.append(Filter.by_property(at.FACETS).contains_any([at.facet(name, value) for value in values]))
    if where.identifiers:
        codes = [token(text) for text in where.identifiers]
        parts.append(
            Filter.any_of([Filter.by_property(p).contains_any(codes) for p in (at.TITLE_TERMS, at.IDENTIFIERS)])
        )
    return Filter.all_of(parts) if len(parts) > 1 else parts[0] if parts else None


def query_text(query: LexicalQuery) -> str:
    """Return the words of a query in the form in which they are indexed; there is no syntax in it."""
    plain = [token(text) for text in (*query.terms, *query.identifiers) if text]
    marked = [token(text, BIGRAM) for text in query.bigrams if text]
    return " ".join(dict.fromkeys([*plain, *marked]))


async def lexical_hits(
    collection: Collection, text: str, boosts: list[str], where: _Filters | None, limit: int
) -> list[IndexHit]:
    """Return the best by BM25, summed over the boosted properties."""

    async def ask(number: int) -> list[IndexHit]:
        found = await collection.query.bm25(
            text,
            query_properties=boosts,
            filters=where,
            limit=number,
            return_metadata=MetadataQuery(score=True),
            return_properties=_KEYS,
        )
        return [_hit(o.properties, o.metadata.score or 0.0) for o in found.objects]

    return await _best(ask, limit)


async def dense_hits(
    collection: Collection, vector: Sequence[float], where: _Filters | None, limit: int
) -> list[IndexHit]:
    """Return the nearest by the dot product. Always under a filter, which is what makes it exact up to EXACT_UP_TO."""
    there = Filter.by_property(at.HAS_VECTOR).equal(True)
    within = there if where is None else where & there

    async def ask(number: int) -> list[IndexHit]:
        found = await collection.query.near_vector(
            list(vector),
            filters=within,
            limit=number,
            return_metadata=MetadataQuery(distance=True),
            return_properties=_KEYS,
        )
        return [_hit(o.properties, -(o.metadata.distance or 0.0)) for o in found.objects]

    return await _best(ask, limit)


def _hit(properties: Any, score: float) -> IndexHit:
    return IndexHit(read_key(properties[at.CHUNK]), read_key(properties[at.DOCUMENT]), score)


async def _best(ask: Callable[[int], Awaitable[list[IndexHit]]], limit: int) -> list[IndexHit]:
    """Ask for more until the limit does not cut through hits of one score, then order ties by id."""
    number = min(limit + MARGIN, MOST)
    while True:
        hits = sorted(await ask(number), key=lambda hit: (-hit.score, hit.id))
        cut_within_tie = len(hits) == number and hits[limit - 1].score == hits[-1].score
        if not cut_within_tie or number == MOST:
            return hits[:limit]
        number = min(4 * number, MOST)


async def documents_with_all(collection: Collection, bigrams: Sequence[str], limit: int) -> list[str]:
    """Return keys of documents with a chunk that holds all these bigrams, in key order.

    Weaviate gives no page beyond 10,000 and does not sort by bytes, so a range of keys that holds more
    than a page is cut in two.
    """
    holds = Filter.by_property(at.BIGRAMS).contains_all([token(text, BIGRAM) for text in bigrams])
    found: set[str] = set()
    ranges: list[tuple[str, str]] = [("", "")]
    while ranges and len(found) < limit:
        low, high = ranges.pop()
        keys = await _keys_between(collection, holds, low, high)
        if len(keys) < PAGE:
            found.update(keys)
            continue
        middle = sorted(keys)[len(keys) // 2]
        ranges += [(middle, high), (low, middle)]
        found.add(middle)
    return sorted(read_key(text) for text in found)[:limit]


async def _keys_between(collection: Collection, holds: _Filters, low: str, high: str) -> list[str]:
    """Return up to PAGE keys above `low` and below `high`; empty ends are open."""
    within = holds
    if low:
        within = within & Filter.by_property(at.DOCUMENT).greater_than(low)
    if high:
        within = within & Filter.by_property(at.DOCUMENT).less_than(high)
    page = await collection.query.fetch_objects(filters=within, limit=PAGE, return_properties=[at.DOCUMENT])
    return [str(o.properties[at.DOCUMENT]) for o in page.objects]
