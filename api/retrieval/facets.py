"""Counts of documents by what one may filter for; only of what the asker may read."""

from collections import Counter
from collections.abc import Iterable

from api.retrieval.search import Candidate
from schemas.change_event import collection_of

_MOST_VALUES = 50


def facets(found: Iterable[Candidate]) -> dict[str, dict[str, int]]:
    """Count the documents of these hits by source, collection and type, the most frequent first."""
    types_of = {candidate.document: candidate.manifest.type for candidate in found}
    collections = Counter([collection_of(key) for key in types_of])
    sources: Counter[str] = Counter()
    for collection, number in collections.items():
        sources[collection.partition("/")[0]] += number
    types = Counter(types_of.values())
    return {
        name: dict(sorted(counter.items(), key=lambda item: (-item[1], item[0]))[:_MOST_VALUES])
        for name, counter in (("source", sources), ("collection", collections), ("type", types))
    }
