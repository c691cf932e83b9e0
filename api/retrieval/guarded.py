"""Filters by fields that not everyone may see: the indexes do not know them, so the manifests decide."""

import time

import msgspec

from api.retrieval.filters import Where
from api.retrieval.question import AnalyzedQuestion
from api.retrieval.reader import Reader
from api.retrieval.search import Candidate, SearchPlan, enough, search

_MOST_DOCUMENTS = 1_000
_SCAN_S = 1.5


async def guarded_search(reader: Reader, question: AnalyzedQuestion, plan: SearchPlan) -> list[Candidate]:
    """Search; where a guarded field left too few of the best hits, find out which documents have the value, and search
    in these. That reads all manifests: past its time or number the first list stands, with a note."""
    found = await search(reader, question, plan)
    if plan.where.documents or not plan.where.fields.keys() & plan.where.guarded:
        return found
    if enough(found, plan.per_document, plan.wanted):
        return found
    documents = await _matching(reader, plan.where)
    if documents is None:
        reader.notes.append(
            "a filter by a restricted field was applied to the best hits only; add another filter to find more"
        )
        return found
    if not documents:
        return []
    where = msgspec.structs.replace(plan.where, documents=tuple(documents))
    return await search(reader, question, msgspec.structs.replace(plan, where=where))


async def _matching(reader: Reader, where: Where) -> list[str] | None:
    """Return the documents that pass, None when they are too many or the look takes too long."""
    documents: list[str] = []
    until = time.monotonic() + _SCAN_S
    async for manifest in reader.runtime.state.scan_manifests(reader.generation):
        if reader.asker.may_read(manifest) and where.matches(manifest, reader.asker):
            documents.append(manifest.document)
        if len(documents) > _MOST_DOCUMENTS or time.monotonic() > until:
            return None
    return documents
