"""Names of entities that somebody may mean: while typing, and where a search found little."""

import asyncio
import re
import time
from collections.abc import Sequence

import msgspec

from api.retrieval.labels import entity_id, plain
from api.retrieval.passages import Passage
from api.retrieval.question import AnalyzedQuestion
from api.retrieval.reader import Reader
from api.retrieval.similar_names import Similar, SimilarNames
from pipeline.errors import BackendUnavailable
from pipeline.ports.runtime import Runtime
from pipeline.steps.iris import node_iri
from pipeline.text.normalize import fold, name_key
from schemas.knowledge import EntityRef
from schemas.query import Suggestion

MOST_NAMES = 200_000
"""Names kept; of more, some are not suggested. About 1 KB each."""
LONGEST = 100
"""Characters of a name, and of what is looked for."""
_STALENESS = 2
"""Names are read again when they may be as old as twice what reading them takes."""
_QUICK_S = 0.02
"""A reading that takes no longer is waited for."""
_AT_ONCE = 500
"""Readings asked of the analyzer in one call, and names whose readings are waited for."""
_LOOKED_UP = 72
"""Names that are looked up in the graph at most, some at a time: what is hidden from the asker counts, too."""
_FACTS_EACH = 8
_SUGGESTION_S = 0.5
_MOST_WORDS = 4
_WORDS = re.compile(r"[ァ-ヺー]{3,}|[一-鿿々]{2,}|[ぁ-ゖー]{4,}|[a-z][a-z0-9_-]{2,}")
_LITTLE = 0.5
"""A passage that holds no larger share of the question's words than this is not what was asked for."""
_FEW = 3


class _Entry(msgspec.Struct):
    names: set[tuple[str, str]]
    similar: SimilarNames
    looked_at: float
    took: float
    revision: int | None


class Suggester:
    """Keeps the names of the live generation, and looks at the graph for what changed when it is asked."""

    def __init__(self, runtime: Runtime) -> None:
        """Start empty; the first question reads all names."""
        self._runtime = runtime
        self._entries: dict[str, _Entry] = {}
        self._refreshing: asyncio.Task[None] | None = None
        self._work: set[asyncio.Task[None]] = set()

    async def suggest(self, reader: Reader, text: str, limit: int) -> list[Suggestion]:
        """Return names like the text that the asker may know of, the likest first."""
        similar = await self._names(reader)
        (reading,) = await self._runtime.analyzer.readings([text[:LONGEST]])
        found = await asyncio.to_thread(similar.find, text[:LONGEST], reading, _LOOKED_UP)
        known: list[Suggestion] = []
        size = max(_FACTS_EACH, limit + limit // 2)
        for start in range(0, len(found), size):
            known += await _permitted(reader, found[start : start + size])
            if len(known) >= limit:
                break
        return known[:limit]

    async def did_you_mean(self, reader: Reader, question: AnalyzedQuestion) -> list[Suggestion]:
        """Return names that the question, or a word of it, may have meant; none where that takes too long."""
        text = fold(question.text[: 2 * LONGEST])[0].strip()
        words = [text] if len(text) <= LONGEST else []
        words += [word for word in dict.fromkeys(_WORDS.findall(text)) if word != text][:_MOST_WORDS]
        if reader.generation not in self._entries and self._refreshing and not self._refreshing.done():
            return []  # the first reading of many names is on its way: a search does not wait for it each time
        try:
            async with asyncio.timeout(_SUGGESTION_S):
                found = [one for word in words for one in await self.suggest(reader, word, _FEW)]
        except (TimeoutError, BackendUnavailable):
            return []
        written = name_key(text)
        new = {one.text: one for one in found if name_key(one.text) not in written}
        return list(new.values())[:_FEW]

    async def _names(self, reader: Reader) -> SimilarNames:
        """Return the names; read them first where there are none yet, or where that is quick."""
        entry = self._entries.get(reader.generation)
        if entry is None or entry.took <= _QUICK_S:
            await asyncio.shield(self._refresh(reader))  # a request that is given up does not stop it
        elif time.monotonic() - entry.looked_at > entry.took * _STALENESS:
            self._refresh(reader)
        entry = self._entries.get(reader.generation)
        return entry.similar if entry else SimilarNames()

    def _refresh(self, reader: Reader) -> "asyncio.Task[None]":
        """Refresh beside the request, in a pin of its own; one at a time."""
        if self._refreshing is None or self._refreshing.done():
            self._refreshing = asyncio.create_task(self._read_names(reader))
            self._refreshing.add_done_callback(self._ended)
        return self._refreshing

    async def _read_names(self, reader: Reader) -> None:
        async with self._runtime.live() as indexes:
            await self._refreshed(Reader(self._runtime, indexes, reader.asker, reader.classes))

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._work.discard(task)
        if not task.cancelled():
            task.exception()  # the next request tries again

    async def _refreshed(self, reader: Reader) -> _Entry:
        """Read the names, and take in what changed."""
        graph, started = reader.indexes.graph, time.monotonic()
        entry = self._entries.get(reader.generation) or _Entry(set(), SimilarNames(), 0.0, 0.0, None)
        revision = await graph.revision()
        if revision is None or revision != entry.revision:
            names = {(iri, name) for iri, name in await graph.names(MOST_NAMES) if len(name) <= LONGEST}
            before, similar = entry.names, entry.similar
            unread = await asyncio.to_thread(lambda: similar.change(names - before, before - names))
            entry.names, entry.revision = names, revision
            await self._read(similar, unread)
            entry.took = time.monotonic() - started
        entry.looked_at = started
        self._entries = {reader.generation: entry}
        return entry

    async def _read(self, similar: SimilarNames, unread: Sequence[str]) -> None:
        """Learn how names are read: a few at once, many beside the requests."""

        async def learn() -> None:
            for start in range(0, len(unread), _AT_ONCE):
                some = unread[start : start + _AT_ONCE]
                similar.learn(zip(some, await self._runtime.analyzer.readings(some), strict=True))

        if len(unread) <= _AT_ONCE:
            await learn()
            return
        task = asyncio.create_task(learn())
        self._work.add(task)
        task.add_done_callback(self._ended)


async def _permitted(reader: Reader, found: Sequence[Similar]) -> list[Suggestion]:
    """Keep the names that some live fact gives which the asker may read."""
    pairs = [(iri, one.name) for one in found for iri in one.entities[:_FACTS_EACH]]
    facts = await reader.live_facts(await reader.indexes.graph.naming(pairs, reader.classes, _FACTS_EACH))
    known = {(plain(fact.object), fact.subject) for fact in facts if isinstance(fact.subject, EntityRef)}
    entities: dict[str, set[str]] = {}
    iris = {(iri, name) for iri, name in pairs}
    for name, ref in known:
        if (node_iri(ref), name) in iris:
            entities.setdefault(name, set()).add(entity_id(ref))
    return [
        Suggestion(text=one.name, entities=sorted(entities[one.name]), match=one.how)
        for one in found
        if one.name in entities
    ]


def found_little(question: AnalyzedQuestion, passages: Sequence[Passage]) -> bool:
    """Say whether no passage holds an asked identifier, or more than half of the question's words."""
    asked = set(question.lexical.terms)
    if any(passage.candidate.exact for passage in passages):
        return False
    return not any(len(asked & passage.terms) > _LITTLE * len(asked) for passage in passages)
