"""Verification: a page of manifests is compared with the indexes, and what they do not hold is put back to work."""

import time
from collections.abc import Callable, Sequence

import structlog

from pipeline.ports.chunk_index import ChunkIndex
from pipeline.ports.graph import Graph
from pipeline.ports.state import State
from schemas.document import Manifest

log = structlog.get_logger(__name__)

ROUND_EVERY_S = 600.0
"""From the start of one round over all manifests to that of the next. Losses are rare, and each round reads everything
once: with more than some 200,000 documents one round follows the other anyway."""
PAGE = 1_000
"""Documents compared at once: a few hundred milliseconds of each store."""
CHUNKS = 5_000
"""Chunks that they may name before the page ends with fewer documents."""
ADVICE = "they are published again; find out what the index's server lost: its log, its disk, who deleted there"


class Verification:
    """Goes over all collected manifests of a generation, a page at each call, round after round.

    An index may lose what it had accepted: a power loss, somebody who deletes in it, a delayed delete of a worker that
    stood still. Chunks and facts that a manifest names must be there; of a deleted document none may stand. Where that
    is not so, at two looks, the manifest is marked as not collected: then the sweep finds it (`Publishing.leftovers`).
    """

    def __init__(
        self,
        generation: str,
        state: State,
        chunks: ChunkIndex,
        graph: Graph,
        *,
        round_every_s: float = ROUND_EVERY_S,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self._round_every_s = round_every_s
        self._generation, self._state, self._chunks, self._graph = generation, state, chunks, graph
        self._seconds, self._after, self._next = seconds, "", 0.0

    async def look(self) -> int:
        """Compare the next page, unless the next round is not due; return how many documents are to be published again.

        Raises BackendUnavailable; the same page is next then.
        """
        now = self._seconds()
        if not self._after and now < self._next:
            return 0
        page, ends = await self._page()
        broken = await self._broken(page)
        if broken:
            # What was being written over at the first look is there at the second.
            broken = await self._broken(list({m.document: m for some in broken.values() for m in some}.values()))
        marked = await self._state.uncollect(self._generation, broken) if broken else {}
        for index, documents in marked.items():
            log.warning(
                "index_lost_documents",
                generation=self._generation,
                index=index,
                documents=len(documents),
                first=documents[0],
                advice=ADVICE,
            )
        if not self._after:
            self._next = now + self._round_every_s
        self._after = "" if ends else page[-1].document
        return len({document for documents in marked.values() for document in documents})

    async def _page(self) -> tuple[list[Manifest], bool]:
        """Return the next manifests, and whether they are the last ones."""
        page = await self._state.collected_manifests(self._generation, after=self._after, limit=PAGE)
        named = 0
        for number, manifest in enumerate(page, start=1):
            named += len(manifest.chunks)
            if named >= CHUNKS and number < len(page):
                return page[:number], False
        return page, len(page) < PAGE

    async def _broken(self, page: Sequence[Manifest]) -> dict[str, list[Manifest]]:
        """Return by index the manifests that it does not hold as they say."""
        deleted = [manifest.document for manifest in page if manifest.op == "delete"]
        versions = {manifest.document: manifest.facts_version for manifest in page if manifest.facts_version}
        gone = await self._chunks.missing([ref.id for manifest in page for ref in manifest.chunks])
        chunks = await self._chunks.held(deleted)
        graph = await self._graph.missing(versions) | await self._graph.held(deleted)
        broken = {
            "chunks": [m for m in page if m.document in chunks or any(ref.id in gone for ref in m.chunks)],
            "graph": [m for m in page if m.document in graph],
        }
        return {index: manifests for index, manifests in broken.items() if manifests}
