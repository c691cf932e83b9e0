"""The state store and the cache in PostgreSQL."""

import asyncio
from collections.abc import AsyncIterator

import psycopg
import pytest

from pipeline.backends.cache_postgres import PostgresCache
from pipeline.backends.state_postgres import open_postgres_state, postgres_state
from pipeline.decoding.names import MAX_DOCUMENT
from pipeline.errors import BackendUnavailable, InvalidEvent
from pipeline.ports.state import DeclaredName, State
from pipeline.steps.column_facts import MAX_NAME_BYTES
from tests.contracts.cache import CacheContract
from tests.contracts.examples import DOCUMENT, at, manifest, record
from tests.contracts.state import StateContract

pytestmark = pytest.mark.stack


class TestPostgresState(StateContract):
    @pytest.fixture
    async def state(self, database_url: str) -> AsyncIterator[State]:
        database = open_postgres_state(database_url)
        yield postgres_state(database)
        await database.close()


class TestPostgresCache(CacheContract):
    @pytest.fixture
    async def cache(self, database_url: str) -> AsyncIterator[PostgresCache]:
        cache = PostgresCache(database_url)
        yield cache
        await cache.close()


async def test_of_two_processes_at_once_one_wins_each_position(database_url: str) -> None:
    first, second = open_postgres_state(database_url), open_postgres_state(database_url)
    for n in range(20):
        one, two = await asyncio.gather(
            postgres_state(first).advance([record(f"e/a/{n}", 1, "log:1")]),
            postgres_state(second).advance([record(f"e/a/{n}", 1, "log:2")]),
        )
        assert sorted([one[0].result, two[0].result]) == ["advanced", "duplicate"]
    for n in range(20):
        wins = await asyncio.gather(
            postgres_state(first).commit("g1", [manifest("e/a/1", 2 * n)]),
            postgres_state(second).commit("g1", [manifest("e/a/1", 2 * n + 1)]),
        )
        assert wins[1] == [True]
    assert (await postgres_state(first).manifests("g1", ["e/a/1"]))["e/a/1"].position == at(39)
    await first.close()
    await second.close()


async def test_opposite_orders_do_not_end_in_a_deadlock(database_url: str) -> None:
    database = open_postgres_state(database_url)
    state = postgres_state(database)
    keys = [f"e/a/{n}" for n in range(30)]
    batches = [[record(k, n, f"{k}:{n}") for k in (keys if n % 2 else keys[::-1])] for n in range(1, 21)]
    await asyncio.gather(*(state.advance(batch) for batch in batches))
    assert {r.version for r in (await state.records(keys)).values()} == {"20"}
    await database.close()


async def test_a_truncate_beside_late_records_leaves_none_alive(database_url: str) -> None:
    """Either the floor is seen by the record, or the record by the scan that follows the floor."""
    database = open_postgres_state(database_url)
    state = postgres_state(database)
    await state.collection("e", "a", positioned=True)

    async def truncate() -> None:
        await state.set_floor("e", "a", at(5), "5", "2025-01-05")
        below = [r async for r in state.scan_records("e/a/") if r.position < at(5)]
        await state.advance([record(r.document, 5, "truncate", op="delete") for r in below])

    await asyncio.gather(*(state.advance([record(f"e/a/{n}", 1, f"log:{n}")]) for n in range(40)), truncate())
    assert [(r.document, r.position) async for r in state.scan_records() if r.op != "delete"] == []
    await database.close()


async def test_a_lost_connection_is_unavailable_and_comes_back(database_url: str) -> None:
    database = open_postgres_state(database_url, connections=2)
    state = postgres_state(database)
    await state.advance([record()])
    with psycopg.connect(database_url, autocommit=True) as other:
        other.execute(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )
    assert list(await state.records([DOCUMENT])) == [DOCUMENT]
    await database.close()


async def test_no_server_is_unavailable() -> None:
    database = open_postgres_state("postgresql://shinsen@127.0.0.1:1/none")
    with pytest.raises(BackendUnavailable, match="check the server"):
        await postgres_state(database).collections()
    await database.close()
    with pytest.raises(BackendUnavailable, match="closed"):
        await postgres_state(database).collections()


async def test_what_the_server_never_takes_is_refused_and_not_waited_for(database_url: str) -> None:
    database = open_postgres_state(database_url)
    state = postgres_state(database)
    for document in ("e/a/\x00", "e/a/" + "".join(chr(0x20000 + n) for n in range(1_000))):
        with pytest.raises(InvalidEvent, match="PostgreSQL never takes this") as refused:
            await state.advance([record("e/a/1", 1), record(document, 1)])
        assert refused.value.code == "store_refused"
    assert await state.records(["e/a/1"]) == {}, "whole or not at all"
    await database.close()


async def test_the_longest_names_and_keys_fit_into_the_indexes(database_url: str) -> None:
    database = open_postgres_state(database_url)
    state = postgres_state(database)
    random = "".join(chr(0x20000 + n * 7919 % 40_000) for n in range(MAX_DOCUMENT // 4 - 1))  # it cannot be compressed
    document, name = f"e/a/{random}"[: MAX_DOCUMENT // 4], random[: MAX_NAME_BYTES // 4]
    await state.advance([record(document, 1, "log:1")])
    await state.begin("generation-1", [document], "w" * 200, known=0)
    declared = [DeclaredName(name, "f" * 100, name)]
    done = await state.commit_declared("generation-1", [manifest(document)], {document: declared}, 0)
    assert done.won == [True]
    await database.close()
