"""The exclusive right between processes."""

import asyncio

import psycopg
import pytest

from pipeline.backends.postgres_lock import PostgresLock
from pipeline.errors import BackendUnavailable

pytestmark = pytest.mark.stack


async def test_two_holders_take_turns(postgres_url: str) -> None:
    locks = [PostgresLock(postgres_url, "one") for _ in range(3)]
    inside, most = 0, 0

    async def work(lock: PostgresLock) -> None:
        nonlocal inside, most
        for _ in range(10):
            async with lock.held():
                inside += 1
                most = max(most, inside)
                await asyncio.sleep(0.001)
                inside -= 1

    await asyncio.gather(*(work(lock) for lock in locks), work(locks[0]))
    assert most == 1
    for lock in locks:
        await lock.close()


async def test_other_names_do_not_wait(postgres_url: str) -> None:
    one, two = PostgresLock(postgres_url, "one"), PostgresLock(postgres_url, "two")
    async with one.held(), asyncio.timeout(5), two.held():
        pass
    await one.close()
    await two.close()


async def test_a_lock_that_was_lost_is_an_error_and_can_be_had_again(postgres_url: str) -> None:
    lock = PostgresLock(postgres_url, "one")
    with pytest.raises(BackendUnavailable):
        async with lock.held():
            with psycopg.connect(postgres_url, autocommit=True) as other:
                other.execute("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'")
    async with lock.held():
        pass
    await lock.close()
    await lock.close()


async def test_no_server(postgres_url: str) -> None:
    with pytest.raises(BackendUnavailable, match="check the server"):
        async with PostgresLock("postgresql://nobody@127.0.0.1:1/none", "one").held():
            pass
