"""The knowledge graph in one pyoxigraph folder per generation."""

import asyncio
import functools
import shutil
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from pipeline.backends.graph_oxigraph_checkpoints import Checkpoints
from pipeline.backends.graph_oxigraph_store import FactStore
from pipeline.backends.graph_terms import class_graph
from pipeline.backends.sparql_guard import check_text
from pipeline.backends.sparql_pool import SparqlPool
from pipeline.errors import BackendUnavailable
from schemas.knowledge import Fact, Node

P = ParamSpec("P")
T = TypeVar("T")

PAGE = 500
"""Facts that a scan reads at a time."""


class OxigraphGraph:
    """Implements Graph in `<folder>/graph-<generation>/`. Constructing it opens the store.

    All writes go through one thread, so a triple's support is judged and changed by one writer.
    A call that was cancelled while it waited does nothing; one that began is finished. Commits
    survive the process, but not always a power loss: then `revision` tells how far the store is.
    """

    def __init__(self, folder: Path, generation: str, *, readers: int = 2, query_processes: int = 2) -> None:
        self._path = folder / f"graph-{generation}"
        self._store = FactStore(self._path / "store")
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="graph-writer")
        self._readers = ThreadPoolExecutor(readers, thread_name_prefix="graph-reader")
        self._pool = SparqlPool(query_processes)
        self._writes = 0
        self._checkpoints = Checkpoints(self._path / "checkpoints", self._write_checkpoint, lambda: self._writes)
        self._closed = False

    async def stage(self, document: str, facts_version: str, facts: Sequence[Fact]) -> None:
        """See Graph.stage. One transaction."""
        for fact in facts:
            if (fact.document, fact.facts_version) != (document, facts_version):
                raise ValueError(f"{fact.iri} is a fact of another document or version than {document}")
        if facts:
            await self._write(FactStore.stage, facts)

    async def collect(self, live: dict[str, str], revision: int) -> None:
        """See Graph.collect. The revision comes with the last change, in one transaction."""
        await self._write(FactStore.collect, live, revision)

    async def revision(self) -> int | None:
        """See Graph.revision; 0 before the first `collect`."""
        return await self._read(FactStore.revision)

    async def facts_about(self, nodes: Sequence[Node], access_classes: Sequence[str] | None, limit: int) -> list[Fact]:
        """See Graph.facts_about. Of a node with more than HUB_FACTS facts it looks at a fixed part."""
        return await self._read(FactStore.facts_about, nodes, _graphs(access_classes), limit)

    async def facts_of(self, documents: Sequence[str]) -> list[Fact]:
        """See Graph.facts_of."""
        return await self._read(FactStore.facts_of, documents)

    async def missing(self, versions: Mapping[str, str]) -> set[str]:
        """See Graph.missing."""
        return await self._read(FactStore.missing, versions)

    async def held(self, documents: Sequence[str]) -> set[str]:
        """See Graph.held."""
        return await self._read(FactStore.held, documents)

    async def find_entities(
        self, text: str, access_classes: Sequence[str] | None, limit: int
    ) -> list[tuple[Node, str]]:
        """See Graph.find_entities. An entity's surface is the name that was found."""
        return await self._read(FactStore.find_entities, text, _graphs(access_classes), limit)

    async def names(self, limit: int) -> list[tuple[str, str]]:
        """See Graph.names."""
        return await self._read(FactStore.entity_names, limit)

    async def naming(
        self, names: Sequence[tuple[str, str]], access_classes: Sequence[str] | None, each: int
    ) -> list[Fact]:
        """See Graph.naming."""
        return await self._read(FactStore.naming, names, _graphs(access_classes), each)

    async def scan(self) -> AsyncIterator[Fact]:
        """See Graph.scan. A fact whose node was damaged or changed by hand is left out."""
        keys = await self._read(FactStore.fact_keys)
        for start in range(0, len(keys), PAGE):
            for fact in await self._read(FactStore.whole_facts, keys[start : start + PAGE]):
                yield fact

    async def triples(self) -> list[tuple[str, str, str, str]]:
        """See Graph.triples."""
        return await self._read(FactStore.triples)

    async def query(
        self,
        sparql: str,
        access_classes: Sequence[str] | None,
        *,
        timeout_s: float,
        accept: str,
        max_bytes: int,
    ) -> bytes:
        """See Graph.query. `accept` is a media type of sparql_child's formats.

        A triple that several permitted classes hold appears once per class: use DISTINCT.
        """
        check_text(sparql)
        async with self._checkpoints.newest() as folder:
            return await self._pool.run(
                sparql, str(folder), _graphs(access_classes), accept=accept, max_bytes=max_bytes, timeout_s=timeout_s
            )

    async def drop(self) -> None:
        """See Graph.drop."""
        await self.close()
        await asyncio.to_thread(shutil.rmtree, self._path, ignore_errors=True)

    async def close(self) -> None:
        """See Graph.close."""
        if self._closed:
            return
        self._closed = True
        await self._pool.close()
        await asyncio.to_thread(self._stop)

    def _stop(self) -> None:
        self._writer.shutdown(wait=True)
        self._readers.shutdown(wait=True)
        self._store.close()
        shutil.rmtree(self._path / "checkpoints", ignore_errors=True)

    async def _write_checkpoint(self, folder: Path) -> None:
        await self._run(self._writer, functools.partial(self._store.backup, folder))

    async def _write(self, call: Callable[Concatenate[FactStore, P], T], *arguments: P.args, **named: P.kwargs) -> T:
        def work() -> T:
            try:
                return call(self._store, *arguments, **named)
            finally:
                self._writes += 1

        return await self._run(self._writer, work)

    async def _read(self, call: Callable[Concatenate[FactStore, P], T], *arguments: P.args, **named: P.kwargs) -> T:
        return await self._run(self._readers, functools.partial(call, self._store, *arguments, **named))

    async def _run(self, threads: ThreadPoolExecutor, work: Callable[[], T]) -> T:
        if self._closed:
            raise BackendUnavailable(f"{self._path}: the graph is closed; open it again")
        try:
            return await asyncio.get_running_loop().run_in_executor(threads, work)
        except OSError as error:
            raise BackendUnavailable(
                f"{self._path}: {error}; check the disk, else restore the folder or run `shinsen replay`"
            ) from error


def _graphs(access_classes: Sequence[str] | None) -> list[str] | None:
    if access_classes is None:
        return None
    return [class_graph(name).value for name in dict.fromkeys(access_classes)]
