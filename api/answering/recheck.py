"""The last look before an answer leaves: is every piece of evidence still what it was?"""

from collections.abc import Sequence

from api.retrieval.filters import Where
from api.retrieval.passages import Passage
from api.retrieval.reader import Reader
from schemas.document import Manifest


async def stale(reader: Reader, passages: Sequence[Passage], where: Where) -> set[str]:
    """Return the documents of the evidence, and of its paths, that changed or went out of sight meanwhile."""
    known = {passage.document: passage.candidate.manifest for passage in passages}
    stated = {step.document for passage in passages for step in passage.path}
    now = await reader.manifests({*known, *stated})
    changed = {key for key, before in known.items() if not _same(before, now.get(key), where, reader)}
    return changed | {key for key in stated if key not in now}


def _same(before: Manifest, now: Manifest | None, where: Where, reader: Reader) -> bool:
    return (
        now is not None
        and now.position == before.position
        and now.chunks == before.chunks
        and now.access == before.access
        and now.restricted_fields == before.restricted_fields
        and where.matches(now, reader.asker)
    )


def without(passages: Sequence[Passage], documents: set[str]) -> list[Passage]:
    """Drop passages of these documents and those reached over their facts."""
    return [
        passage
        for passage in passages
        if passage.document not in documents and not any(step.document in documents for step in passage.path)
    ]
