"""What the database does when its server, its connections or its callers do not do as they should."""

import asyncio
import time
from collections.abc import Callable

import psycopg
import pytest

from pipeline.backends import postgres_connections
from pipeline.backends.postgres import PostgresDatabase
from pipeline.backends.sql_state.transaction import Row, Transaction
from pipeline.errors import BackendUnavailable, InvalidConfiguration

pytestmark = pytest.mark.stack
END_ALL = (
    "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
)


def one(tx: Transaction) -> list[Row]:
    return tx.execute("SELECT 1")


def sleep(seconds: float) -> Callable[[Transaction], list[Row]]:
    return lambda tx: tx.execute("SELECT pg_sleep(?)", (seconds,))


async def connections(url: str) -> int:
    async with await psycopg.AsyncConnection.connect(url) as other:
        rows = await other.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
            " AND backend_type = 'client backend'"
        )
        (number,) = await rows.fetchone() or (0,)
        return int(number)


async def test_idle_connections_that_the_server_closed_are_replaced_unseen(database_url: str) -> None:
    database = PostgresDatabase(database_url, connections=3)
    await asyncio.gather(*(database.read(sleep(0.1)) for _ in range(3)))
    with psycopg.connect(database_url, autocommit=True) as other:
        other.execute(END_ALL)
    for _ in range(5):
        assert await database.read(one) == [(1,)]
    await database.close()


async def test_a_connection_lost_in_the_middle_is_unavailable_and_comes_back(database_url: str) -> None:
    database = PostgresDatabase(database_url)

    def lose(tx: Transaction) -> None:
        tx.execute("SELECT pg_terminate_backend(pg_backend_pid())")

    with pytest.raises(BackendUnavailable, match=r"terminating connection.*check the server"):
        await database.write(lose)
    assert await database.read(one) == [(1,)]
    await database.close()


async def test_everything_else_goes_on_while_one_waits(database_url: str) -> None:
    database = PostgresDatabase(database_url, connections=4)
    await database.read(one)
    began = time.monotonic()
    await asyncio.gather(*(database.read(sleep(0.5)) for _ in range(4)))
    assert time.monotonic() - began < 1.5
    await database.close()


async def test_no_more_connections_than_allowed_and_all_closed_at_the_end(database_url: str) -> None:
    database = PostgresDatabase(database_url, connections=2)
    await database.read(one)  # the tables are made on a connection besides
    work = [asyncio.create_task(database.read(sleep(0.1))) for _ in range(8)]
    await asyncio.sleep(0.3)
    assert await connections(database_url) <= 2
    await asyncio.gather(*work)
    await database.close()
    await database.close()
    assert await connections(database_url) == 0


async def test_when_all_stay_busy_the_caller_is_told(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_connections, "WAIT_S", 0.2)
    database = PostgresDatabase(database_url, connections=1)
    await database.read(one)
    slow = asyncio.create_task(database.read(sleep(1)))
    await asyncio.sleep(0.05)
    with pytest.raises(BackendUnavailable, match="all 1 connections were busy"):
        await database.read(one)
    await slow
    assert await database.read(one) == [(1,)]
    await database.close()


async def test_a_caller_that_goes_away_leaves_no_transaction_open(database_url: str) -> None:
    database = PostgresDatabase(database_url, connections=1)
    await database.write(lambda tx: tx.execute("INSERT INTO offsets (consumer, value) VALUES ('kept', 1)"))

    def slow(tx: Transaction) -> None:
        tx.execute("UPDATE offsets SET value = 2")
        tx.execute("SELECT pg_sleep(30)")

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3):
            await database.write(slow)
    assert await database.read(lambda tx: tx.execute("SELECT value FROM offsets")) == [(1,)]
    await database.close()


async def test_an_error_of_the_work_undoes_it_and_reaches_the_caller(database_url: str) -> None:
    database = PostgresDatabase(database_url, connections=1)

    def work(tx: Transaction) -> None:
        tx.execute("INSERT INTO offsets (consumer, value) VALUES ('lost', 1)")
        raise KeyError("no generation named 'g9'")

    with pytest.raises(KeyError, match="g9"):
        await database.write(work)
    assert await database.read(lambda tx: tx.execute("SELECT value FROM offsets")) == []
    await database.close()


async def test_a_reader_cannot_write_and_sees_one_snapshot(database_url: str) -> None:
    database = PostgresDatabase(database_url)
    with pytest.raises(BackendUnavailable, match="read-only"):  # so it is after a fail-over to a standby, too
        await database.read(lambda tx: tx.execute("INSERT INTO offsets (consumer, value) VALUES ('no', 1)"))

    def twice(tx: Transaction) -> tuple[int, int]:
        first = tx.execute("SELECT count(*) FROM offsets")[0][0]
        with psycopg.connect(database_url, autocommit=True) as other:
            other.execute("INSERT INTO offsets (consumer, value) VALUES ('beside', 1)")
        return first, tx.execute("SELECT count(*) FROM offsets")[0][0]

    assert await database.read(twice) == (0, 0)
    await database.close()


@pytest.mark.parametrize("address", ["postgresql//shinsen:s3cret@host/db", "host=h password=s3cret nonsense=1"])
async def test_an_address_that_is_none_is_refused_without_quoting_it(address: str) -> None:
    database = PostgresDatabase(address)
    with pytest.raises(InvalidConfiguration, match="SHINSEN_POSTGRES") as caught:
        await database.read(one)
    assert "s3cret" not in str(caught.value)
    assert caught.value.__cause__ is None
    await database.close()


async def test_no_server_is_unavailable_at_once_and_says_no_password() -> None:
    database = PostgresDatabase("postgresql://shinsen:s3cret@127.0.0.1:1/none")
    began = time.monotonic()
    with pytest.raises(BackendUnavailable, match=r"refused.*check the server") as caught:
        await database.read(one)
    assert time.monotonic() - began < 2
    assert "s3cret" not in str(caught.value)
    await database.close()
