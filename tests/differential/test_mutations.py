"""The digest reads every store back: whatever is dropped or changed by hand in one of them changes it."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pyoxigraph
import pytest

from pipeline.backends.chunks_sqlite_rows import prepare_connection
from pipeline.errors import BackendUnavailable
from tests.differential.events import Change, history
from tests.differential.running import running, scratch

HISTORY = history(
    [
        Change("machine", "F-17", ("赤い荷役車", "フォークリフト", ["all-staff"], "1.50")),
        Change(
            "report",
            "r1",
            (("赤い荷役車が構内で停止した。", "F-17は、フォークリフトである。"), ["maintenance"], "田中"),
        ),
        Change("note", "n1", ("三号機",)),
        Change("report_gone", "r2"),
        Change("machine_bad", "K-08"),
        Change("garbage", "", (b"{x",)),
    ]
)


@pytest.fixture
def folder() -> Iterator[Path]:
    with scratch() as path:
        yield path


async def digest_of(folder: Path) -> dict[str, str]:
    async with running(folder) as runtime:
        return await runtime.digest()


async def prepared(folder: Path) -> dict[str, str]:
    async with running(folder) as runtime:
        await runtime.submit(HISTORY)
        return await runtime.digest()


def state(sql: str) -> Callable[[Path], None]:
    """Change the state store."""

    def change(folder: Path) -> None:
        connection = apsw.Connection(str(folder / "state.db"))
        connection.execute(sql)
        assert connection.changes() == 1, sql
        connection.close()

    return change


def chunks(sql: str) -> Callable[[Path], None]:
    """Change the chunk index."""

    def change(folder: Path) -> None:
        connection = apsw.Connection(str(folder / "chunks-g1.db"))
        prepare_connection(connection)
        connection.execute(sql)
        assert connection.changes() >= 1, sql
        connection.close()

    return change


def graph(choose: Callable[[pyoxigraph.Quad], bool]) -> Callable[[Path], None]:
    """Drop the first quad that is chosen."""

    def change(folder: Path) -> None:
        store = pyoxigraph.Store(str(folder / "graph-g1" / "store"))
        quad = min((q for q in store if choose(q)), key=str)
        store.remove(quad)
        store.flush()
        del store

    return change


def is_fact_node(quad: pyoxigraph.Quad) -> bool:
    return "predicate" in str(quad.predicate)


def is_plain_triple(quad: pyoxigraph.Quad) -> bool:
    return "is_a" in str(quad.predicate)


BIGRAM = """INSERT INTO lexical (lexical, rowid, title, terms, bigrams, identifiers)
    SELECT 'delete', n, title, terms, bigrams, identifiers FROM chunk_tokens ORDER BY n LIMIT 1"""
MUTATIONS = {
    "records": [
        state("DELETE FROM records WHERE document = 'memo/notes/n1'"),
        state("UPDATE records SET columns = '{}' WHERE document = 'memo/notes/n1'"),
        state("UPDATE records SET version = '0' WHERE document = 'dms/reports/r2'"),
        state("DELETE FROM records WHERE document = 'dms/reports/r2'"),
    ],
    "manifests": [
        state("DELETE FROM manifests WHERE document = 'memo/notes/n1'"),
        state(
            "UPDATE manifests SET body = replace(body, 'maintenance', 'all-staff') WHERE document = 'dms/reports/r1'"
        ),
        state("DELETE FROM manifests WHERE document = 'dms/reports/r2'"),
    ],
    "names": [state("DELETE FROM names WHERE name = '赤い荷役車'")],
    "dead_letters": [
        state("DELETE FROM dead_letters WHERE code = 'missing_column'"),
        state("UPDATE dead_letters SET payload = x'79' WHERE document = ''"),
    ],
    "chunks": [
        chunks(BIGRAM),
        chunks("DELETE FROM vector WHERE rowid = (SELECT min(n) FROM chunk)"),
        chunks("UPDATE chunk SET class = (SELECT max(n) FROM access_class) WHERE document = 'erp/equipment/F-17'"),
        chunks("UPDATE chunk SET vector_model = '' WHERE document = 'memo/notes/n1'"),
        chunks("UPDATE content SET body = (SELECT body FROM content ORDER BY n DESC LIMIT 1) WHERE n = 1"),
    ],
    "facts": [graph(is_fact_node)],
    "triples": [graph(is_plain_triple)],
}


@pytest.mark.parametrize(("part", "number"), [(p, n) for p, changes in MUTATIONS.items() for n in range(len(changes))])
def test_a_change_by_hand_changes_the_digest(folder: Path, part: str, number: int) -> None:
    before, after = asyncio.run(around(folder, part, MUTATIONS[part][number]))
    changed = {name for name in before if before[name] != after[name]}
    assert {part, "all"} <= changed


async def around(folder: Path, part: str, change: Callable[[Path], None]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the digest before and after a change: in a running process, because a start mends what it can."""
    if part in ("facts", "triples"):  # the graph's folder has one opener
        before = await prepared(folder)
        change(folder)
        return before, await digest_of(folder)
    async with running(folder) as runtime:
        await runtime.submit(HISTORY)
        before = await runtime.digest()
        change(folder)
        return before, await runtime.digest()


def test_a_chunk_without_its_row_is_an_error(folder: Path) -> None:
    with pytest.raises(BackendUnavailable, match="shinsen replay"):
        asyncio.run(around(folder, "chunks", chunks("DELETE FROM chunk WHERE document = 'memo/notes/n1'")))


def test_a_manifest_that_is_gone_is_made_again_at_the_next_start(folder: Path) -> None:
    before = asyncio.run(prepared(folder))
    MUTATIONS["manifests"][0](folder)
    assert asyncio.run(digest_of(folder)) == before


def test_nothing_changed_changes_nothing(folder: Path) -> None:
    before = asyncio.run(prepared(folder))
    assert asyncio.run(digest_of(folder)) == before


def test_an_index_folder_that_is_gone_is_built_again(folder: Path) -> None:
    before = asyncio.run(prepared(folder))
    (folder / "chunks-g1.db").unlink()
    assert asyncio.run(digest_of(folder)) == before
