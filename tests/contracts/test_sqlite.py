"""The database holder: group commit, isolation of failures, snapshots, errors that say what to do."""

import asyncio
import threading
from pathlib import Path

import apsw
import pytest

from pipeline.backends.sqlite import Database
from pipeline.errors import BackendUnavailable, InvalidConfiguration

SCHEMA = "CREATE TABLE t (n INTEGER PRIMARY KEY, word TEXT)"


def insert(n: int, word: str = "x"):  # type: ignore[no-untyped-def]
    def run(connection: apsw.Connection) -> int:
        connection.execute("INSERT INTO t VALUES (?, ?)", (n, word))
        return n

    return run


def count(connection: apsw.Connection) -> int:
    return int(connection.execute("SELECT count(*) FROM t").get)


async def test_queued_writes_run_in_order_and_answer_each(tmp_path: Path) -> None:
    database = Database(tmp_path / "a.db", SCHEMA)
    assert await asyncio.gather(*(database.write(insert(n)) for n in range(500))) == list(range(500))
    assert await database.read(count) == 500
    await database.close()


async def test_a_write_that_raises_undoes_only_itself(tmp_path: Path) -> None:
    database = Database(tmp_path / "a.db", SCHEMA)

    def half(connection: apsw.Connection) -> None:
        connection.execute("INSERT INTO t VALUES (99, 'half')")
        raise KeyError("no")

    calls = [database.write(insert(1)), database.write(half), database.write(insert(1)), database.write(insert(2))]
    results = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(result) for result in results] == [int, KeyError, apsw.ConstraintError, int]
    assert await database.read(lambda c: c.execute("SELECT n FROM t").fetchall()) == [(1,), (2,)]
    await database.close()


async def test_a_reader_sees_one_snapshot_and_cannot_write(tmp_path: Path) -> None:
    database = Database(tmp_path / "a.db", SCHEMA)
    loop = asyncio.get_running_loop()

    def twice(connection: apsw.Connection) -> tuple[int, int]:
        first = count(connection)
        asyncio.run_coroutine_threadsafe(database.write(insert(1)), loop).result()
        return first, count(connection)

    assert await database.read(twice) == (0, 0)
    assert await database.read(count) == 1
    with pytest.raises(BackendUnavailable):
        await database.read(insert(2))
    await database.close()


async def test_a_cancelled_write_that_did_not_begin_does_nothing(tmp_path: Path) -> None:
    database = Database(tmp_path / "a.db", SCHEMA)
    gate = asyncio.Event()
    loop = asyncio.get_running_loop()

    def slow(_: apsw.Connection) -> None:
        asyncio.run_coroutine_threadsafe(gate.wait(), loop).result()

    first = asyncio.create_task(database.write(slow))
    second = asyncio.create_task(database.write(insert(1)))
    await asyncio.sleep(0.05)
    second.cancel()
    gate.set()
    await first
    await asyncio.gather(second, return_exceptions=True)
    assert await database.read(count) == 0
    await database.close()


async def test_what_was_written_is_there_after_reopening(tmp_path: Path) -> None:
    database = Database(tmp_path / "folder" / "a.db", SCHEMA)
    await database.write(insert(1))
    await database.close()
    await database.close()
    with pytest.raises(BackendUnavailable, match="closed"):
        await database.write(insert(2))
    database = Database(tmp_path / "folder" / "a.db", SCHEMA)
    assert await database.read(count) == 1
    await database.destroy()
    assert list((tmp_path / "folder").iterdir()) == []


async def test_another_version_or_no_database_is_refused(tmp_path: Path) -> None:
    await Database(tmp_path / "a.db", SCHEMA).close()
    with pytest.raises(InvalidConfiguration, match="replay"):
        Database(tmp_path / "a.db", SCHEMA, version=2)
    (tmp_path / "b.db").write_bytes(b"no database at all, only some text" * 200)
    with pytest.raises(BackendUnavailable, match=r"b\.db.*remove b\.db and start again"):
        Database(tmp_path / "b.db", SCHEMA)
    (tmp_path / "file").touch()
    with pytest.raises(BackendUnavailable, match="folder"):
        Database(tmp_path / "file" / "c.db", SCHEMA)


async def test_a_full_disk_fails_all_of_the_group_and_the_next_write_works(tmp_path: Path) -> None:
    def small(connection: apsw.Connection) -> None:
        connection.pragma("max_page_count", 20)

    database = Database(tmp_path / "a.db", SCHEMA, setup=small)
    calls = [database.write(insert(n, "x" * (100 if n < 3 else 200_000))) for n in range(4)]
    results = await asyncio.gather(*calls, return_exceptions=True)
    assert isinstance(results[3], BackendUnavailable)
    assert "free space" in str(results[3])
    kept = [result for result in results if isinstance(result, int)]
    assert await database.read(count) == len(kept)
    assert await database.write(insert(50)) == 50
    await database.close()


async def test_a_locked_database_is_unavailable_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.backends.sqlite.BUSY_MS", 50)
    database = Database(tmp_path / "a.db", SCHEMA)
    other = apsw.Connection(str(tmp_path / "a.db"))
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(BackendUnavailable, match="another process"):
        await database.write(insert(1))
    other.execute("ROLLBACK")
    assert await database.write(insert(1)) == 1
    await database.close()


async def test_reads_are_finished_on_closing_unless_their_callers_have_gone(tmp_path: Path) -> None:
    database = Database(tmp_path / "a.db", SCHEMA, readers=1)
    gate = threading.Event()
    ran: list[str] = []

    def read(name: str):  # type: ignore[no-untyped-def]
        def run(connection: apsw.Connection) -> str:
            gate.wait()
            ran.append(name)
            return name

        return run

    first, second, third = (asyncio.create_task(database.read(read(name))) for name in ("a", "b", "c"))
    await asyncio.sleep(0)
    second.cancel()
    closing = asyncio.create_task(database.close())
    gate.set()
    assert [await first, await third] == ["a", "c"]
    await closing
    assert ran == ["a", "c"]
    with pytest.raises(BackendUnavailable, match="closed"):
        await database.look(count)


def test_an_event_loop_that_ended_takes_no_reader_with_it(tmp_path: Path) -> None:
    database = Database(tmp_path / "a.db", SCHEMA, readers=1)
    begun, gate = threading.Event(), threading.Event()

    def held(_: apsw.Connection) -> None:
        begun.set()
        gate.wait()

    async def gone() -> None:
        task = asyncio.create_task(database.look(held))
        await asyncio.to_thread(begun.wait)
        task.cancel()

    asyncio.run(gone())
    gate.set()

    async def after() -> int:
        found = await database.read(count)
        await database.close()
        return found

    assert asyncio.run(after()) == 0
