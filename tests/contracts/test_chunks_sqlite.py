"""The SQLite chunk index: the contract, and what is its own."""

import asyncio
import random
from pathlib import Path

import apsw
import pytest

from pipeline.backends.chunks_sqlite import SqliteChunks
from pipeline.backends.chunks_sqlite_rows import prepare_connection
from pipeline.errors import BackendUnavailable, InvalidConfiguration
from pipeline.ports.chunk_index import ChunkFilter, ChunkIndex
from tests.contracts.chunk_examples import ALL, chunk, unit, words
from tests.contracts.chunk_fixtures import OpenIndex
from tests.contracts.chunk_index import ChunkIndexContract
from tests.contracts.chunk_writes import scanned


class TestSqliteChunks(ChunkIndexContract):
    @pytest.fixture
    async def open_index(self, tmp_path: Path) -> OpenIndex:
        async def open_it() -> ChunkIndex:
            return SqliteChunks(tmp_path, "g1")

        return open_it


class TestSqliteChunksSearchedInTheFile(ChunkIndexContract):
    """Beyond `vectors_in_memory`."""

    @pytest.fixture
    async def open_index(self, tmp_path: Path) -> OpenIndex:
        async def open_it() -> ChunkIndex:
            return SqliteChunks(tmp_path, "g1", vectors_in_memory=0)

        return open_it


@pytest.fixture
def by_hand(tmp_path: Path) -> apsw.Connection:
    connection = apsw.Connection(str(tmp_path / "chunks-g1.db"))
    prepare_connection(connection)
    return connection


async def filled(folder: Path) -> SqliteChunks:
    index = SqliteChunks(folder, "g1")
    names = ("a", "b", "c")
    await index.stage(
        [chunk(n, "荷重", "ABC", n, bigrams=("荷重",), title_terms=("表題",), vector=unit(1)) for n in names]
    )
    return index


async def test_a_sound_index_scans_as_staged_after_updates_and_removals(tmp_path: Path) -> None:
    index = await filled(tmp_path)
    await index.stage([chunk("a", "別", vector=unit(1))])
    await index.collect({"cmms/work_orders/1-1": ("a", "b")}, 1)
    assert [(one.id, one.analysis.terms, one.vector is not None) for one in await scanned(index)] == [
        ("a", ("別",), True),
        ("b", ("荷重", "ABC", "b"), True),
    ]
    await index.close()


async def test_a_lost_index_row_shows_in_the_scan(tmp_path: Path, by_hand: apsw.Connection) -> None:
    index = await filled(tmp_path)
    by_hand.execute("DELETE FROM lexical WHERE rowid = (SELECT n FROM chunk WHERE id = 'b')")
    assert [(one.id, one.analysis.terms) for one in await scanned(index)] == [
        ("a", ("荷重", "ABC", "a")),
        ("b", ()),
        ("c", ("荷重", "ABC", "c")),
    ]
    await index.close()


async def test_a_single_lost_term_shows_in_the_scan(tmp_path: Path, by_hand: apsw.Connection) -> None:
    index = await filled(tmp_path)
    row = by_hand.execute("SELECT n, title, terms, bigrams, identifiers FROM chunk_tokens LIMIT 1").get
    by_hand.execute(
        "INSERT INTO lexical(lexical, rowid, title, terms, bigrams, identifiers) VALUES ('delete',?,?,?,?,?)", row
    )
    by_hand.execute(
        "INSERT INTO lexical(rowid, title, terms, bigrams, identifiers) VALUES (?,?,?,'',?)", (*row[:3], row[4])
    )
    assert [one.analysis.terms == () for one in await scanned(index)] == [True, False, False]
    await index.close()


async def test_foreign_terms_are_an_error(tmp_path: Path, by_hand: apsw.Connection) -> None:
    index = await filled(tmp_path)
    by_hand.execute("INSERT INTO lexical(rowid, terms) VALUES (99, '余り')")
    with pytest.raises(BackendUnavailable, match="replay"):
        await scanned(index)
    await index.close()


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM vector WHERE rowid = (SELECT n FROM chunk WHERE id = 'b')",
        "UPDATE vector SET class = 7 WHERE rowid = (SELECT n FROM chunk WHERE id = 'b')",
    ],
)
async def test_a_lost_or_misfiled_vector_shows_in_the_scan(
    tmp_path: Path, by_hand: apsw.Connection, damage: str
) -> None:
    index = await filled(tmp_path)
    by_hand.execute(damage)
    assert [(one.id, one.vector is not None) for one in await scanned(index)] == [
        ("a", True),
        ("b", False),
        ("c", True),
    ]
    await index.close()


async def test_vectors_of_another_length_are_refused(tmp_path: Path) -> None:
    index = await filled(tmp_path)
    with pytest.raises(InvalidConfiguration, match="replay"):
        await index.stage([chunk("d", vector=unit(1)[:16])])
    with pytest.raises(InvalidConfiguration, match="replay"):
        await index.dense(unit(1)[:16], ALL, 5)
    assert await index.count() == 3
    await index.close()


async def test_a_refused_first_batch_leaves_nothing(tmp_path: Path) -> None:
    index = SqliteChunks(tmp_path, "g1")
    with pytest.raises(InvalidConfiguration):
        await index.stage([chunk("a", "荷重", vector=unit(1)[:16]), chunk("b", vector=unit(1))])
    assert await index.count() == 0
    await index.stage([chunk("b", "荷重", vector=unit(1))])
    assert [one.id for one in await scanned(index)] == ["b"]
    assert [hit.id for hit in await index.lexical(words("荷重"), ALL, 2)] == ["b"]
    await index.close()


async def test_compacting_takes_removed_terms_out_of_the_file(tmp_path: Path) -> None:
    index = await filled(tmp_path)
    await index.stage([chunk("d", "himitsu", document="s/c/secret", vector=unit(0.123))])
    await index.collect({"s/c/secret": ()}, 1)
    await index.compact()
    assert len(await scanned(index)) == 3
    await index.close()
    assert b"imitsu" not in (tmp_path / "chunks-g1.db").read_bytes()


@pytest.mark.parametrize("in_memory", [0, 4_999, 10_000])
async def test_thousands_of_equal_vectors_tie_by_id(tmp_path: Path, in_memory: int) -> None:
    index = SqliteChunks(tmp_path, "g1", vectors_in_memory=in_memory)
    await index.stage([chunk(f"c{n:04}", vector=unit(1)) for n in reversed(range(5_000))])
    assert [hit.id for hit in await index.dense(unit(1), ALL, 3)] == ["c0000", "c0001", "c0002"]
    assert len(await index.dense(unit(1), ALL, 4_500)) == 4_500
    await index.close()


async def test_common_tokens_are_left_out_but_never_identifiers(tmp_path: Path) -> None:
    index = SqliteChunks(tmp_path, "g1", posting_budget=50)
    await index.stage([chunk(f"c{n:03}", "部品", "同じ", bigrams=("した",), identifiers=("f-17",)) for n in range(100)])
    await index.stage([chunk("rare", "荷重")])
    assert [hit.id for hit in await index.lexical(words("荷重", "部品", bigrams=("した",)), ALL, 9)] == ["rare"]
    assert len(await index.lexical(words("荷重", "部品", identifiers=("f-17",)), ALL, 200)) == 101
    assert len(await index.lexical(words("部品", "同じ"), ALL, 200)) == 100
    await index.close()


async def test_a_word_that_no_chunk_held_is_found_once_one_does(tmp_path: Path) -> None:
    index = SqliteChunks(
        tmp_path, "g1", posting_budget=10
    )  # so small that words are counted before they are looked for
    await index.stage([chunk("a", "点検"), *(chunk(f"other{n}", "温度", document=f"d/{n}") for n in range(20))])
    asked = words("新語", "点検")

    async def seen_by_all_readers() -> set[tuple[str, ...]]:
        found = await asyncio.gather(*(index.lexical(asked, ALL, 10) for _ in range(20)))
        return {tuple(sorted(hit.id for hit in hits)) for hits in found}

    assert await seen_by_all_readers() == {("a",)}
    await index.stage([chunk("b", "新語")])
    assert await seen_by_all_readers() == {("a", "b")}
    await index.collect({"cmms/work_orders/1-1": ("a",)}, 1)
    assert await seen_by_all_readers() == {("a",)}
    await index.stage([chunk("c", "異音", title_terms=("新語",))])
    assert await seen_by_all_readers() == {("a", "c")}
    await index.close()


async def test_every_cased_or_odd_character_is_its_own_token(tmp_path: Path) -> None:
    points = [
        *range(1, 0x250),
        *range(0x370, 0x530),
        *range(0x1C80, 0x2200),
        *range(0x2460, 0x2500),
        *range(0x3000, 0x3100),
    ]
    points += [*range(0xA640, 0xA7FF), *range(0xFB00, 0xFFFE), *range(0x10400, 0x10450), *range(0x1F100, 0x1F200)]
    tokens = [f"x{chr(point)}y" for point in points if not chr(point).isspace() and not 0xD800 <= point < 0xE000]
    index = SqliteChunks(tmp_path, "g1")
    await index.stage([chunk("all", *tokens)])
    assert (await scanned(index))[0].analysis.terms == tuple(tokens)
    for token in tokens[::97]:
        assert [hit.id for hit in await index.lexical(words(token), ALL, 2)] == ["all"], token
    await index.close()


async def test_memory_and_file_find_the_same_after_any_changes(tmp_path: Path) -> None:
    """Searches between the changes, so that rows are read again, moved and let go; past the limit and back."""
    chance = random.Random(17)
    memory = SqliteChunks(tmp_path, "g1", vectors_in_memory=60)
    file = SqliteChunks(tmp_path, "g2", vectors_in_memory=0)
    for _ in range(120):
        names = [f"c{chance.randrange(80):02}" for _ in range(chance.randrange(1, 8))]
        if chance.random() < 0.6:
            change = [
                chunk(
                    n,
                    document=f"s/c/{n[:2]}",
                    access_class=chance.choice("ab"),
                    vector=unit(chance.randrange(-9, 9), 3),
                )
                for n in dict.fromkeys(names)
            ]
            for index in (memory, file):
                await index.stage(change)
        else:
            for index in (memory, file):
                await index.collect({f"s/c/{names[0][:2]}": tuple(names)}, 1)
        where = chance.choice(
            [
                ALL,
                ChunkFilter(access_classes=("a",)),
                ChunkFilter(documents=("s/c/c1", "s/c/c2")),
                ChunkFilter(access_classes=("z",)),
            ]
        )
        asked = unit(chance.randrange(-9, 9), 2)
        found, expected = await memory.dense(asked, where, 7), await file.dense(asked, where, 7)
        assert [hit.score for hit in found] == pytest.approx([hit.score for hit in expected], abs=1e-5)
        assert {hit.id for hit in found if hit.score > found[-1].score + 1e-5} == {
            hit.id for hit in expected if hit.score > expected[-1].score + 1e-5
        }
    await memory.close()
    await file.close()


async def test_a_cancelled_stage_is_found_once_it_is_written(tmp_path: Path) -> None:
    index = SqliteChunks(tmp_path, "g1")
    await index.stage([chunk("a", vector=unit(1))])
    await index.dense(unit(1), ALL, 5)
    staging = asyncio.create_task(index.stage([chunk("b", vector=unit(1))]))
    while await index.count() < 2:
        if not staging.done():
            staging.cancel()
        await asyncio.sleep(0.001)
        if staging.done() and await index.count() < 2:
            staging = asyncio.create_task(index.stage([chunk("b", vector=unit(1))]))
    assert {hit.id for hit in await index.dense(unit(1), ALL, 5)} == {"a", "b"}
    await asyncio.gather(staging, return_exceptions=True)
    await index.close()


async def test_a_file_of_a_version_without_vectors_of_sentences_serves_and_takes_them(
    tmp_path: Path, by_hand: apsw.Connection
) -> None:
    index = await filled(tmp_path)
    await index.close()
    by_hand.execute("DROP TABLE sentence_vectors")
    again = SqliteChunks(tmp_path, "g1")
    assert (await again.texts(["a"]))["a"].sentence_vectors == b"" == (await again.get(["a"]))["a"].sentence_vectors
    await again.stage([chunk("a", "荷重", vector=unit(1), sentence_vectors=bytes(16))])
    assert (await again.texts(["a"]))["a"].sentence_vectors == bytes(16)
    await again.close()
