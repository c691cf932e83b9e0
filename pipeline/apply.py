"""Apply: stage, commit, collect. The manifest's compare-and-set is the moment at which a version becomes visible."""

import asyncio
import hashlib
from collections.abc import Sequence

import msgspec

from pipeline.ports.chunk_index import ChunkIndex
from pipeline.ports.graph import Graph
from pipeline.ports.state import State
from pipeline.prepare import Prepared
from pipeline.steps.facts import NameIndex, TextFacts, declared_names
from pipeline.steps.iris import bind_facts
from pipeline.text.terms import bigrams
from schemas.access import AccessRule
from schemas.change_event import split_document_key
from schemas.document import ChunkRef, IndexedChunk, Manifest
from schemas.knowledge import Fact, FactDraft
from schemas.outcome import Outcome

RELINK_LIMIT = 1_000_000
"""Documents looked at for one changed name; a name in more documents than this is no name."""

_CRASH_LEAD = 1
"""An index may be this far ahead of the state store after a crash between collecting and noting it."""


class Linked(msgspec.Struct):
    """A prepared document with its facts and the manifest that will make it visible."""

    prepared: Prepared
    manifest: Manifest
    drafts: list[FactDraft] = []
    facts: list[Fact] = []


class Published(msgspec.Struct, frozen=True):
    """What a batch did: which committed, and whose links must be looked at again."""

    committed: list[bool]
    relinks: list[str]


class Applier:
    """The one writer of one generation. Batches run one after the other; running one again changes nothing."""

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
    ) -> None:
        self.generation, self.announces = generation, announces
        self._state, self._chunks, self._graph, self._text_facts = state, chunks, graph, text_facts
        self._vector_model = vector_model
        self._lock = asyncio.Lock()
        self._names: NameIndex | None = None
        self._classes: set[str] = set()
        self._revision = 0

    async def open(self) -> int:
        """Find out how far the indexes got and put the rest back to work; return how many documents that is.

        After a power loss, or when an older copy of an index folder was put back, an index may be
        behind the state store: everything collected later than the smaller revision is done again. When
        an older state store was put back, the indexes are ahead, and hold documents that it never knew.
        """
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
        async with self._lock:
            names = await self._name_index()
            newest = await self._newest(batch)
            linked = await asyncio.to_thread(self._link, list(newest.values()), names)
            await self._stage(linked)
            committed = await self._state.commit(self.generation, [link.manifest for link in linked])
            won = [link for link, ok in zip(linked, committed, strict=True) if ok]
            lost = [link for link, ok in zip(linked, committed, strict=True) if not ok]
            relinks = await self._declare(won)
            self._revision += 1
            await self._collect(won, lost)
            await self._finish(won, relinks)
            ends = dict(zip(newest, committed, strict=True))
            return Published([ends.get(n, False) for n in range(len(batch))], relinks)

    async def _newest(self, batch: Sequence[Prepared]) -> dict[int, Prepared]:
        """Leave out what is behind the committed manifest, or behind another one of the batch.

        Staging it would write older attributes over chunks that both versions share.
        """
        standing = await self._state.manifests(self.generation, [p.record.document for p in batch])
        chosen: dict[str, int] = {}
        for n, prepared in enumerate(batch):
            document, order = prepared.record.document, _order(prepared)
            manifest = standing.get(document)
            if manifest is not None and _is_behind(prepared, manifest):
                continue
            if document not in chosen or order >= _order(batch[chosen[document]]):
                chosen[document] = n
        return {n: batch[n] for n in sorted(chosen.values())}

    async def _name_index(self) -> NameIndex:
        if self._names is None:
            declared = await self._state.declared_names(self.generation)
            self._names = await asyncio.to_thread(NameIndex, declared)
        return self._names

    def _link(self, batch: Sequence[Prepared], names: NameIndex) -> list[Linked]:
        return [self._link_one(prepared, names) for prepared in batch]

    def _link_one(self, prepared: Prepared, names: NameIndex) -> Linked:
        document, record = prepared.document, prepared.record
        if document is None:
            return Linked(prepared, _deleted(prepared))
        drafts: list[FactDraft] = []
        if prepared.stage == "full":
            found = self._text_facts.find(document, prepared.chunks, prepared.analyses, names)
            drafts = [*document.facts, *found]
        version = _facts_version(record.position, drafts) if drafts else ""
        manifest = Manifest(
            document=record.document,
            op="upsert",
            position=record.position,
            version=record.version,
            stage=prepared.stage,
            title=document.title,
            type=document.type,
            updated_at=document.updated_at,
            access=document.access,
            chunks=tuple(ChunkRef(c.id, c.start, c.end) for c in prepared.chunks),
            facts_version=version,
            fields=document.fields,
            restricted_fields=document.restricted_fields,
        )
        return Linked(prepared, manifest, drafts, bind_facts(drafts, document, version, record.occurred_at))

    async def _stage(self, linked: Sequence[Linked]) -> None:
        await self._remember_classes(linked)
        pieces = [piece for link in linked for piece in self._indexed(link)]
        if pieces:
            await self._chunks.stage(pieces)
        for link in linked:
            if link.facts:
                await self._graph.stage(link.manifest.document, link.manifest.facts_version, link.facts)

    async def _remember_classes(self, linked: Sequence[Linked]) -> None:
        rules: dict[str, AccessRule] = {}
        for link in linked:
            document = link.prepared.document
            if document is not None:
                met = [document.access.met(d.access) for d in link.drafts if d.access is not None]
                rules.update({rule.access_class(): rule for rule in (document.access, *met)})
        new = {name: rule for name, rule in rules.items() if name not in self._classes}
        if new:
            await self._state.remember_classes(list(new.values()))
            self._classes.update(new)

    def _indexed(self, link: Linked) -> list[IndexedChunk]:
        document = link.prepared.document
        if document is None:
            return []
        source, collection, _ = split_document_key(document.key)
        vectors: Sequence[bytes | None] = link.prepared.vectors or [None] * len(link.prepared.chunks)
        open_fields = {k: v for k, v in document.fields.items() if k not in document.restricted_fields}
        parts = zip(link.prepared.chunks, link.prepared.analyses, link.prepared.title_terms, vectors, strict=True)
        return [
            IndexedChunk(
                id=piece.id,
                document=document.key,
                text=piece.text,
                title=document.title,
                headings=piece.headings,
                analysis=analysis,
                title_terms=title_terms,
                vector=vector,
                vector_model=self._vector_model if vector is not None else "",
                access_class=document.access.access_class(),
                source=source,
                collection=collection,
                type=document.type,
                updated_at=document.updated_at,
                fields=open_fields,
            )
            for piece, analysis, title_terms, vector in parts
        ]

    async def _declare(self, won: Sequence[Linked]) -> list[str]:
        """Replace declared names; documents that hold a name whose meaning changed must be linked again."""
        full = [link for link in won if link.manifest.stage == "full"]
        declared = {link.manifest.document: declared_names(link.manifest.document, link.drafts) for link in full}
        changed = await self._state.changed_names(self.generation, declared) if declared else []
        holders: set[str] = set()
        for name in changed:
            holders.update(await self._holders(name))
        # A document of this batch may hold a name that another of this batch has just declared.
        relinks = sorted(holders)
        # The marks first: after a crash between the two, the names are still seen to change.
        await self._state.mark_relinks(self.generation, relinks)
        if declared:
            self._names = None if changed else self._names
            await self._state.replace_names(self.generation, declared)
        return relinks

    async def _holders(self, name: str) -> list[str]:
        """Return all documents that may hold a name."""
        pairs = bigrams(name)
        if pairs:
            return await self._chunks.documents_with(pairs, RELINK_LIMIT)
        # Such as A・B: no index knows it, so everything is looked at.
        return [m.document async for m in self._state.scan_manifests(self.generation) if m.op == "upsert"]

    async def _collect(self, won: Sequence[Linked], lost: Sequence[Linked]) -> None:
        live = {link.manifest.document: link.manifest for link in won}
        if lost:
            documents = [link.manifest.document for link in lost]
            live = await self._state.manifests(self.generation, documents) | live
        if not live:
            return
        chunks = {document: tuple(ref.id for ref in m.chunks) for document, m in live.items()}
        await self._chunks.collect(chunks, self._revision)
        versions = {d: m.facts_version for d, m in live.items() if m.stage == "full"}
        if versions:
            await self._graph.collect(versions, self._revision)

    async def _finish(self, won: Sequence[Linked], relinks: Sequence[str]) -> None:
        if self.announces:
            ended = [k for k in won if k.manifest.stage == "full" and not k.prepared.withdrawn]
            await self._state.announce([o for link in ended for o in _outcomes(link)])
            await self._state.outlived([(link.manifest.document, link.manifest.position) for link in ended])
        done = [(link.manifest.document, link.manifest.position) for link in won]
        await self._state.collected(self.generation, done, self._revision)
        linked = {link.manifest.document for link in won if link.manifest.stage == "full"} - set(relinks)
        await self._state.clear_relinks(self.generation, sorted(linked))


def _order(prepared: Prepared) -> tuple[str, bool]:
    return prepared.record.position, prepared.stage == "full"


def _is_behind(prepared: Prepared, standing: Manifest) -> bool:
    """Say what `State.commit` would say, before anything is staged."""
    back_to_text = prepared.stage == "text" and standing.stage == "full"
    return prepared.record.position < standing.position or back_to_text


def _deleted(prepared: Prepared) -> Manifest:
    record = prepared.record
    return Manifest(
        document=record.document,
        op="delete",
        position=record.position,
        version=record.version,
        stage="full",
        updated_at=record.occurred_at,
    )


def _facts_version(position: str, drafts: Sequence[FactDraft]) -> str:
    """Return 16 hex digits that change with the position and with what the text was linked to."""
    return hashlib.sha256(msgspec.json.encode([position, drafts])).hexdigest()[:16]


def _outcomes(link: Linked) -> list[Outcome]:
    origins, document = link.prepared.record.origins, link.manifest.document
    return [
        Outcome(
            event=origin,
            document=document,
            position=link.manifest.position,
            outcome="applied" if n == len(origins) else "superseded",
        )
        for n, origin in enumerate(origins, start=1)
    ]
