"""Counts of documents by what one may filter for; only of what the asker may read."""

from collections import Counter
from collections.abc import Iterable

from api.retrieval.search import Candidate
from schemas.change_event import split_document_key

_MOST_VALUES = 50


def facets(found: Iterable[Candidate]) -> dict[str, dict[str, int]]:
    """Count the documents of these hits by source, collection and type, the most frequent first."""
    manifests = {candidate.document: candidate.manifest for candidate in found}
    sources, collections, types = Counter[str](), Counter[str](), Counter[str]()
    for key, manifest in manifests.items():
        source, collection, _ = split_document_key(key)
        sources[source] += 1
        collections[f"{source}/{collection}"] += 1
        types[manifest.type] += 1
    return {
        name: dict(sorted(counter.items(), key=lambda item: (-item[1], item[0]))[:_MOST_VALUES])
        for name, counter in (("source", sources), ("collection", collections), ("type", types))
    }
