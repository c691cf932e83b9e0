"""Counts of documents by what one may filter for; only of what the asker may read."""

from collections import Counter
from collections.abc import Iterable

from api.retrieval.search import Candidate
from schemas.change_event import split_document_key

_MOST_VALUES = 50


def facets(found: Iterable[Candidate]) -> dict[str, dict[str, int]]:
    """Count the documents of these hits by source, collection and type, the most frequent first."""
    types_of = {candidate.document: candidate.manifest.type for candidate in found}
    parts = [split_document_key(key) for key in types_of]
    sources = Counter([source for source, _, _ in parts])
    collections = Counter([f"{source}/{collection}" for source, collection, _ in parts])
    types = Counter(types_of.values())
    return {
        name: dict(sorted(counter.items(), key=lambda item: (-item[1], item[0]))[:_MOST_VALUES])
        for name, counter in (("source", sources), ("collection", collections), ("type", types))
    }
