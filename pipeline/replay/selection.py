"""Which documents a replay into the live generation does again."""

from collections.abc import AsyncIterator, Sequence

from pipeline.errors import NotFound
from pipeline.ports.generations import Indexes, ReplayPlan
from pipeline.ports.state import State
from pipeline.replay.plan import start_of
from pipeline.replay.supply import Supply
from pipeline.text.normalize import name_key
from pipeline.text.terms import bigrams

PAGE = 500
MOST_HOLDERS = 1_000_000
"""Documents with one word; there are no more in a generation that one machine holds."""


async def selected(plan: ReplayPlan, state: State, supply: Supply, indexes: Indexes) -> AsyncIterator[list[str]]:
    """Yield pages of documents that have a record, each document once a page. Raises NotFound, NotPossible."""
    prefixes = tuple(f"{name}/" for name in plan.collections)
    page: dict[str, None] = {}
    async for document in _chosen(plan, state, supply, indexes):
        if not prefixes or document.startswith(prefixes):
            page[document] = None
        if len(page) >= PAGE:
            yield list(page)
            page = {}
    if page:
        yield list(page)


async def _chosen(plan: ReplayPlan, state: State, supply: Supply, indexes: Indexes) -> AsyncIterator[str]:
    if plan.documents or plan.holding:
        await _check_there(plan.documents, state)
        found = set(plan.documents)
        for word in plan.holding:
            found.update(await holders(word, state, indexes))
        for document in sorted(found):
            yield document
    elif start_of(plan.start).everything:
        for prefix in [f"{name}/" for name in plan.collections] or [""]:
            async for record in state.scan_records(prefix):
                if record.position:
                    yield record.document
    else:
        async for document in supply.since(plan.start):
            yield document


async def _check_there(documents: Sequence[str], state: State) -> None:
    there = await state.records(documents)
    missing = [document for document in documents if document not in there]
    if missing:
        raise NotFound(f"no document {', '.join(missing[:10])}; a document is named source/collection/key")


async def holders(word: str, state: State, indexes: Indexes) -> list[str]:
    """Return the documents whose text may hold a word, in any of its written forms."""
    pairs = bigrams(name_key(word))
    if pairs:
        return await indexes.chunks.documents_with(pairs, MOST_HOLDERS)
    # One character: no index knows it, so everything is looked at.
    return [m.document async for m in state.scan_manifests(indexes.generation) if m.op == "upsert"]
