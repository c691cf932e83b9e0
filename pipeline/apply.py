"""Apply: stage, commit, collect. The manifest's compare-and-set is the moment at which a version becomes visible."""

import asyncio
from collections.abc import Sequence
from functools import partial

import msgspec

from pipeline.link import Linked, access_rules, holds_changed_name, indexed_chunks, link, outcomes
from pipeline.ports.chunk_index import ChunkIndex
from pipeline.ports.graph import Graph
from pipeline.ports.publishing import Begun, Committed, DeclaredName, Finish, NameChange
from pipeline.ports.state import State
from pipeline.prepare import Prepared
from pipeline.steps.facts import NameIndex, TextFacts, declared_names
from pipeline.text.terms import bigrams
from pipeline.writer_marks import LEASE_S, WriterMarks
from schemas.document import Manifest

RELINK_LIMIT = 1_000_000
"""Documents looked at for one changed name; a name in more documents than this is no name."""
MARKED_AT_ONCE = 5_000
"""Documents marked in one transaction."""
_CRASH_LEAD = 1
"""An index may be this far ahead of the state store after a crash between collecting and noting it."""


class Published(msgspec.Struct, frozen=True):
    """What a batch did."""

    committed: list[bool]
    relinks: list[str]
    """Documents that hold a name whose meaning this batch changed: marked, and to be linked again."""
    again: list[str] = []
    """Documents of the batch in whose indexes this writer may have written what does not stand, as another was in its
    way, or that are to be linked again and were not: whoever called publishes what their records say now. Until then
    they keep this writer's mark."""


class Applier:
    """Publishes documents of one generation, one batch after the other; running one again changes nothing.

    Several appliers, in several processes, may publish the same documents at once: what stands in the end
    is the newest version, whole, linked with all names. See ops/decisions/stack-stages.md.
    """

    def __init__(
        self,
        generation: str,
        state: State,
        chunks: ChunkIndex,
        graph: Graph,
        text_facts: TextFacts,
        *,
        vector_model: str,
        announces: bool,
        writer: str,
        lease_s: float = LEASE_S,
    ) -> None:
        """`writer` names this applier in its marks: another name for each that runs at the same time."""
        self.generation, self.announces = generation, announces
        self._state, self._chunks, self._graph, self._text_facts = state, chunks, graph, text_facts
        self._vector_model = vector_model
        self._marks = WriterMarks(state, generation, writer, lease_s)
        self._lock = asyncio.Lock()
        self._names: NameIndex | None = None
        self._known = 0
        self._classes: set[str] = set()
        self._revision = 0
        self._touched: set[str] = set()
        """Documents written to an index, or whose relinking mark was taken off, until ended or published again."""

    async def open(self) -> int:
        """Find out how far the indexes got and put the rest back to work; return how many documents that is.

        After a power loss, or when an older copy of an index folder was put back, an index may be
        behind the state store: everything collected later than the smaller revision is done again. When
        an older state store was put back, the indexes are ahead, and hold documents that it never knew.
        """
        await self.look_up(await self._state.unlooked(self.generation))
        standing = await self._state.revision(self.generation)
        kept = [r for r in (await self._chunks.revision(), await self._graph.revision()) if r is not None]
        self._revision = max([standing, *kept])
        smallest = min([standing, *kept])
        if self._revision > standing + _CRASH_LEAD:
            await self._take_back()
            smallest, standing = 0, self._revision
        return await self._state.uncollect_after(self.generation, smallest) if smallest < standing else 0

    async def _take_back(self) -> None:
        """Remove from the indexes what no manifest names; the rest is applied again after this."""
        held = {chunk.document async for chunk in self._chunks.scan()}
        held |= {fact.document async for fact in self._graph.scan()}
        known = await self._state.manifests(self.generation, sorted(held))
        gone = sorted(held - known.keys())
        await self._chunks.collect(dict.fromkeys(gone, ()), self._revision)
        await self._graph.collect(dict.fromkeys(gone, ""), self._revision)

    async def publish(self, batch: Sequence[Prepared]) -> Published:
        """Make a batch visible. `committed[i]` is False when a newer version of that document stands."""
        if not batch:
            return Published([], [])
        async with self._lock:
            documents = [prepared.record.document for prepared in batch]
            begun = await self._begin(documents)
            newest = _newest(batch, begun.standing)
            # What this batch has only in an older version is still to be linked as the name in it now stands.
            self._touched.update(begun.relinking)
            names = await self._name_index()
            linked = await asyncio.to_thread(self._link, list(newest.values()), names)
            await self._stage(linked)
            committed = await self._commit(linked)
            won = [one for one, ok in zip(linked, committed.won, strict=True) if ok]
            relinks = await self.look_up(committed.declared)
            self._revision += 1
            await self._collect(won)
            await self._finish(won, _taken_by_surprise(won, committed), set(documents))
            ends = dict(zip(newest, committed.won, strict=True))
            again = sorted(set(documents) & self._touched)
            return Published([ends.get(n, False) for n in range(len(batch))], relinks, again)

    # ---------------------------------------------------------------- before the commit

    async def _begin(self, documents: Sequence[str]) -> Begun:
        begun = await self._marks.begin(documents, self._known)
        self._learn(begun.changes)
        return begun

    def _learn(self, changes: Sequence[NameChange]) -> None:
        if self._names is None:
            return
        for change in changes:
            self._names.replace(change.name, change.entities)
            self._known = max(self._known, change.number)

    async def _name_index(self) -> NameIndex:
        """Read all names once; afterwards only what changes."""
        if self._names is None:
            changes = await self._state.name_changes(self.generation, 0)
            declared = await self._state.declared_names(self.generation)
            self._names = await asyncio.to_thread(NameIndex, declared)
            # What changed between the two reads is in the second, and comes again as a change above this number.
            self._known = max((change.number for change in changes), default=0)
        return self._names

    def _link(self, batch: Sequence[Prepared], names: NameIndex) -> list[Linked]:
        return [link(prepared, self._text_facts, names) for prepared in batch]

    async def _stage(self, linked: Sequence[Linked]) -> None:
        rules = {name: rule for name, rule in access_rules(linked).items() if name not in self._classes}
        if rules:
            await self._state.remember_classes(list(rules.values()))
            self._classes.update(rules)
        documents = [one.manifest.document for one in linked]
        self._touched.update(documents)
        pieces = [piece for one in linked for piece in indexed_chunks(one.prepared, self._vector_model)]
        # Facts at once: a SPARQL server is sent few requests then, and commits few times.
        writes = [
            partial(self._graph.stage, one.manifest.document, one.manifest.facts_version, one.facts)
            for one in linked
            if one.facts
        ]
        if pieces:
            writes.append(partial(self._chunks.stage, pieces))
        await self._marks.write(documents, writes)

    # ---------------------------------------------------------------- the commit, and after it

    async def _commit(self, linked: Sequence[Linked]) -> Committed:
        declared: dict[str, list[DeclaredName]] = {
            one.manifest.document: declared_names(one.manifest.document, one.drafts)
            for one in linked
            if one.manifest.stage == "full"
        }
        manifests = [one.manifest for one in linked]
        committed = await self._state.commit_declared(self.generation, manifests, declared, self._known)
        self._learn(committed.changes)
        return committed

    async def look_up(self, changes: Sequence[NameChange]) -> list[str]:
        """Mark the documents that may hold a changed name for relinking; return them.

        Whoever stages such a document after this look-up sees the change at its own commit.
        """
        if not changes:
            return []
        relinks = sorted({document for change in changes for document in await self._holders(change.name)})
        for start in range(0, len(relinks), MARKED_AT_ONCE):
            await self._state.mark_relinks(self.generation, relinks[start : start + MARKED_AT_ONCE])
        await self._state.looked_up(self.generation, changes)
        return relinks

    async def _holders(self, name: str) -> list[str]:
        """Return all documents that may hold a name."""
        pairs = bigrams(name)
        if pairs:
            return await self._chunks.documents_with(pairs, RELINK_LIMIT)
        # Such as A・B: no index knows it, so everything is looked at.
        return [m.document async for m in self._state.scan_manifests(self.generation) if m.op == "upsert"]

    async def _collect(self, won: Sequence[Linked]) -> None:
        if not won:
            return
        chunks = {one.manifest.document: tuple(ref.id for ref in one.manifest.chunks) for one in won}
        versions = {one.manifest.document: one.manifest.facts_version for one in won if one.manifest.stage == "full"}
        writes = [partial(self._chunks.collect, chunks, self._revision)]
        if versions:
            writes.append(partial(self._graph.collect, versions, self._revision))
        await self._marks.write(list(chunks), writes)

    async def _finish(self, won: Sequence[Linked], surprised: set[str], documents: set[str]) -> None:
        """End what stands. The others stay touched.

        They were linked before a name in them changed; or another writer has committed them since, and we
        may have written older attributes, or collected by a manifest that did not stand any more.
        """
        good = [one for one in won if one.manifest.document not in surprised]
        done = [self._ended(one) for one in good]
        ok = await self._state.finish(
            self.generation,
            done,
            self._revision,
            writer=self._marks.writer,
            stale=self._marks.stale,
            left=sorted(documents - self._touched),
        )
        self._touched -= {one.manifest.document for one, stands in zip(good, ok, strict=True) if stands}

    def _ended(self, one: Linked) -> Finish:
        unrefined = one.prepared.unrefined if one.prepared.chunks else False
        if not self.announces or one.manifest.stage != "full" or one.prepared.withdrawn:
            return Finish(one.manifest, unrefined=unrefined)
        return Finish(one.manifest, outcomes(one), mends=True, unrefined=unrefined)


def _newest(batch: Sequence[Prepared], standing: dict[str, Manifest]) -> dict[int, Prepared]:
    """Leave out what is behind the committed manifest, or behind another one of the batch.

    Staging it would write older attributes over chunks that both versions share.
    """
    chosen: dict[str, int] = {}
    for n, prepared in enumerate(batch):
        document, order = prepared.record.document, _order(prepared)
        manifest = standing.get(document)
        if manifest is not None and _is_behind(prepared, manifest):
            continue
        if document not in chosen or order >= _order(batch[chosen[document]]):
            chosen[document] = n
    return {n: batch[n] for n in sorted(chosen.values())}


def _order(prepared: Prepared) -> tuple[str, bool]:
    return prepared.record.position, prepared.stage == "full"


def _is_behind(prepared: Prepared, standing: Manifest) -> bool:
    """Say what `State.commit` would say, before anything is staged."""
    back_to_text = prepared.stage == "text" and standing.stage == "full"
    return prepared.record.position < standing.position or back_to_text


def _taken_by_surprise(won: Sequence[Linked], committed: Committed) -> set[str]:
    """Return documents that hold a name which another writer changed while they were linked."""
    own = {change.number for change in committed.declared}
    others = [change for change in committed.changes if change.number not in own]
    return {one.manifest.document for one in won if holds_changed_name(one, others)}
