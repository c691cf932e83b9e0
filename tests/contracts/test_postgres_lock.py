"""The exclusive right between processes."""

import asyncio
import signal
import sys
import time
import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psycopg
import pytest

from pipeline.backends.postgres_lock import PostgresLock
from pipeline.errors import BackendUnavailable, InvalidConfiguration

pytestmark = pytest.mark.stack


async def test_two_holders_take_turns(database_url: str) -> None:
    locks = [PostgresLock(database_url, "one") for _ in range(3)]
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


async def test_other_names_do_not_wait(database_url: str) -> None:
    one, two = PostgresLock(database_url, "one"), PostgresLock(database_url, "two")
    async with one.held(), asyncio.timeout(5), two.held():
        pass
    await one.close()
    await two.close()


async def test_a_lock_that_was_lost_is_an_error_and_can_be_had_again(database_url: str) -> None:
    lock = PostgresLock(database_url, "one")
    with pytest.raises(BackendUnavailable):
        async with lock.held():
            with psycopg.connect(database_url, autocommit=True) as other:
                other.execute(
                    "SELECT pg_terminate_backend(l.pid) FROM pg_locks l JOIN pg_database d ON d.oid = l.database"
                    " WHERE locktype = 'advisory' AND datname = current_database()"
                )
    async with lock.held():
        pass
    await lock.close()
    await lock.close()


async def test_no_server(database_url: str) -> None:
    with pytest.raises(BackendUnavailable, match="check the server"):
        async with PostgresLock("postgresql://nobody@127.0.0.1:1/none", "one").held():
            pass


HOLDER = """
import asyncio, sys
from pipeline.backends.postgres_lock import PostgresLock
from pipeline.errors import BackendUnavailable, InvalidConfiguration

async def main():
    lock = PostgresLock(sys.argv[1], sys.argv[2], lease_s=1)
    async with lock.held() as confirm:
        await confirm()
        print("held", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        try:
            await confirm()
        except BackendUnavailable as error:
            print("lost", error, flush=True)
        else:
            print("still mine", flush=True)

try:
    asyncio.run(main())
except BackendUnavailable as error:
    print("ended", error, flush=True)
"""


@asynccontextmanager
async def holder(url: str, name: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """Another process that holds the lock until it reads a line."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", HOLDER, url, name, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdin and process.stdout
    try:
        assert await process.stdout.readline() == b"held\n"
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def said(process: asyncio.subprocess.Process) -> str:
    assert process.stdin and process.stdout
    process.stdin.write(b"\n")
    return (await process.stdout.read()).decode()


async def test_a_stopped_holder_loses_it_and_finds_out(database_url: str) -> None:
    lock = PostgresLock(database_url, "stopped", lease_s=1, wait_s=20)
    async with holder(database_url, "stopped") as process:
        process.send_signal(signal.SIGSTOP)
        began = time.monotonic()
        async with lock.held():
            assert 0.5 < time.monotonic() - began < 10
            process.send_signal(signal.SIGCONT)
            heard = await said(process)
    assert heard.startswith("lost PostgreSQL: lock stopped:")
    assert "ended" in heard
    await lock.close()


async def test_a_holder_that_lives_keeps_it_however_long(database_url: str) -> None:
    lock = PostgresLock(database_url, "long", lease_s=1, wait_s=4)
    async with holder(database_url, "long") as process:
        with pytest.raises(BackendUnavailable, match="others held it for 4 s"):
            async with lock.held():
                pass
        assert await said(process) == "still mine\n"
    async with lock.held():
        pass
    await lock.close()


async def test_a_killed_holder_frees_it_at_once(database_url: str) -> None:
    lock = PostgresLock(database_url, "killed", lease_s=30)
    async with holder(database_url, "killed") as process:
        process.kill()
        async with asyncio.timeout(5), lock.held():
            pass
    await lock.close()


async def test_a_stopped_waiter_stalls_nobody(database_url: str) -> None:
    """It gets its turn while it is stopped, and its lease is soon over."""
    first = PostgresLock(database_url, "waiter", lease_s=1)
    third = PostgresLock(database_url, "waiter", lease_s=1, wait_s=20)
    async with first.held():
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", HOLDER, database_url, "waiter")
        await waiting(database_url)
        process.send_signal(signal.SIGSTOP)
    async with asyncio.timeout(15), third.held():
        pass
    process.kill()
    await process.wait()
    await first.close()
    await third.close()


async def test_a_waiter_that_gives_up_leaves_no_lock_behind(database_url: str) -> None:
    first, second = PostgresLock(database_url, "given up"), PostgresLock(database_url, "given up")
    async with first.held():
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3), second.held():
                pass
    async with asyncio.timeout(5), first.held():
        pass
    async with asyncio.timeout(5), second.held():
        pass
    await first.close()
    await second.close()


async def waiting(url: str) -> None:
    """Return when somebody waits for an advisory lock."""
    async with asyncio.timeout(20), await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        sql = """SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database
            WHERE locktype = 'advisory' AND NOT granted AND datname = current_database()"""
        while (await (await connection.execute(sql)).fetchone()) == (0,):  # noqa: ASYNC110  # it is the server's
            await asyncio.sleep(0.05)


async def test_a_malformed_address_is_not_shown() -> None:
    """psycopg quotes the address, and with it the password."""
    lock = PostgresLock("postgresql://shinsen:secret word@127.0.0.1:5432/x", "x")
    with pytest.raises(InvalidConfiguration) as refused:
        async with lock.held():
            pass
    assert "SHINSEN_POSTGRES is no address" in str(refused.value)
    shown = "".join(traceback.format_exception(refused.value))
    assert "secret" not in shown
