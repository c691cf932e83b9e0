"""The history of the tables in PostgreSQL: it ends where tables.py does, for new and for old databases."""

import asyncio
from importlib import import_module
from pathlib import Path

import psycopg
import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory

from pipeline.backends.cache_postgres import PostgresCache
from pipeline.backends.postgres_migrations import upgrade
from pipeline.backends.postgres_migrations.known import HEAD, REVISIONS
from pipeline.backends.postgres_migrations.sql import TYPES
from pipeline.backends.sql_state.tables import added_statements, create_statements
from pipeline.backends.state_postgres import open_postgres_state, postgres_state
from pipeline.errors import BackendUnavailable, InvalidConfiguration
from tests.contracts.examples import DOCUMENT, record

pytestmark = pytest.mark.stack

COLUMNS = """
    SELECT table_name, column_name, data_type, collation_name, is_nullable, column_default
    FROM information_schema.columns WHERE table_schema = %s"""
INDEXES = "SELECT tablename, indexname, replace(indexdef, schemaname || '.', '') FROM pg_indexes WHERE schemaname = %s"
CONSTRAINTS = """
    SELECT c.conrelid::regclass::text, c.conname, pg_get_constraintdef(c.oid)
    FROM pg_constraint c JOIN pg_namespace n ON n.oid = c.connamespace WHERE n.nspname = %s"""


def catalogue(url: str, schema: str) -> set[tuple[object, ...]]:
    """What the tables of a schema are, but for the order of their columns."""
    with psycopg.connect(url, options=f"-c search_path={schema}") as connection:
        rows = {tuple(row) for sql in (COLUMNS, INDEXES, CONSTRAINTS) for row in connection.execute(sql, (schema,))}
    return {row for row in rows if row[0] not in ("cache", "shinsen_revision")}


def made_by_tables(url: str, schema: str) -> None:
    types = (TYPES["text"], TYPES["blob"], TYPES["int"])
    statements = [*create_statements(*types), *added_statements(*types)]
    with psycopg.connect(url) as connection:
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
        connection.execute(f"SET search_path TO {schema}")
        for statement in statements:
            connection.execute(statement)


async def test_the_revisions_end_where_tables_py_does(database_url: str) -> None:
    """If this fails, tables.py was changed without a revision: its first lines say how to write one."""
    database = open_postgres_state(database_url)
    await postgres_state(database).collections()
    await database.close()
    made_by_tables(database_url, "wanted")
    assert catalogue(database_url, "public") == catalogue(database_url, "wanted")


def test_revisions_are_one_line_in_the_order_of_their_files() -> None:
    folder = Path(upgrade.__file__).parent
    config = Config()
    config.set_main_option("script_location", str(folder))
    config.set_main_option("version_locations", str(folder / "revisions"))
    config.set_main_option("path_separator", "newline")
    line = [script.revision for script in ScriptDirectory.from_config(config).walk_revisions()]
    assert line[::-1] == list(REVISIONS)
    assert line[0] == HEAD


async def test_a_database_from_before_the_revisions_is_taken_over(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the walking skeleton made it: the first revision's tables, one of them with content, and schema_version."""
    first = import_module("pipeline.backends.postgres_migrations.revisions.r0001_tables")
    statements: list[str] = []
    monkeypatch.setattr(first, "run", lambda *given: statements.extend(given))
    first.upgrade()
    monkeypatch.undo()
    with psycopg.connect(database_url) as connection:
        for statement in statements[:-1]:
            connection.execute(statement.format(**TYPES))
        connection.execute("CREATE TABLE schema_version (part TEXT PRIMARY KEY, version BIGINT NOT NULL)")
        connection.execute("INSERT INTO schema_version VALUES ('state', 1), ('cache', 1)")
        connection.execute(
            "INSERT INTO records VALUES (%s, 'upsert', 'p', '1', '2025-01-01', '{}', '[]', 'live')", (DOCUMENT,)
        )
    database = open_postgres_state(database_url)
    assert (await postgres_state(database).records([DOCUMENT]))[DOCUMENT].position == "p"
    await database.close()
    with psycopg.connect(database_url) as connection:
        assert connection.execute("SELECT version_num FROM shinsen_revision").fetchall() == [(HEAD,)]
        assert connection.execute("SELECT to_regclass('schema_version')").fetchone() == (None,)


async def test_many_that_start_at_once_make_the_tables_once(database_url: str) -> None:
    databases = [open_postgres_state(database_url) for _ in range(6)]
    caches = [PostgresCache(database_url) for _ in range(3)]
    await asyncio.gather(
        *(postgres_state(database).collections() for database in databases),
        *(cache.put("k", {"a": b"1"}) for cache in caches),
    )
    assert await caches[0].get("k", ["a"]) == {"a": b"1"}
    await asyncio.gather(*(database.close() for database in databases), *(cache.close() for cache in caches))
    with psycopg.connect(database_url) as connection:
        assert connection.execute("SELECT version_num FROM shinsen_revision").fetchall() == [(HEAD,)]


async def test_an_open_store_finds_its_tables_again(database_url: str) -> None:
    for ordinal in (1, 2):
        database = open_postgres_state(database_url)
        (result,) = await postgres_state(database).advance([record(DOCUMENT, ordinal)])
        assert result.result == "advanced"
        await database.close()


async def test_the_tables_of_a_newer_program_are_refused(database_url: str) -> None:
    database = open_postgres_state(database_url)
    await postgres_state(database).collections()
    await database.close()
    with psycopg.connect(database_url, autocommit=True) as other:
        other.execute("UPDATE shinsen_revision SET version_num = '9999'")
    database = open_postgres_state(database_url)
    with pytest.raises(InvalidConfiguration, match=r"revision 9999.*install that version"):
        await postgres_state(database).collections()
    await database.close()
    with pytest.raises(InvalidConfiguration, match="revision 9999"):  # another program may have been faster
        await asyncio.to_thread(upgrade.migrate, database_url)


async def test_a_revision_that_fails_leaves_nothing_half_done(database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as other:
        other.execute("CREATE VIEW generations AS SELECT 1 AS name")
        other.execute("CREATE TABLE outcomes (other BIGINT)")  # somebody else's: the index on it fails
    database = open_postgres_state(database_url)
    with pytest.raises(InvalidConfiguration, match="outcome"):
        await postgres_state(database).collections()
    with psycopg.connect(database_url, autocommit=True) as other:
        assert other.execute("SELECT to_regclass('records')").fetchone() == (None,)
        other.execute("DROP VIEW generations")
        other.execute("DROP TABLE outcomes")
    assert await postgres_state(database).collections() == []
    await database.close()


async def test_a_role_that_may_not_make_tables_is_told_so(database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as other:
        other.execute("DROP ROLE IF EXISTS reader")
        other.execute("CREATE ROLE reader LOGIN")
        other.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
    database = open_postgres_state(database_url.replace("user=shinsen", "user=reader"))
    with pytest.raises(InvalidConfiguration, match=r"permission denied.*give the role"):
        await postgres_state(database).collections()
    await database.close()
    with psycopg.connect(database_url, autocommit=True) as other:
        other.execute("DROP ROLE reader")


async def test_a_migration_that_another_holds_up_is_waited_for_only_so_long(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upgrade, "SETTINGS", "-c lock_timeout=200")
    with psycopg.connect(database_url) as other:
        other.execute("SELECT pg_advisory_xact_lock(hashtext('shinsen schema'))")
        database = open_postgres_state(database_url)
        with pytest.raises(BackendUnavailable, match="lock timeout"):
            await postgres_state(database).collections()
    assert await postgres_state(database).collections() == []
    await database.close()
