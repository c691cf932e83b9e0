"""State store and change log in one SQLite file; the cache in another, which may be lost."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import apsw

from pipeline.backends.sql_state.state import SqlState
from pipeline.backends.sql_state.tables import VERSION, added_statements, create_statements
from pipeline.backends.sql_state.transaction import Row, Transaction
from pipeline.backends.sqlite import Database

T = TypeVar("T")

LOG = """CREATE TABLE log (
    "offset" INTEGER PRIMARY KEY AUTOINCREMENT, value BLOB, key BLOB, headers TEXT NOT NULL, topic TEXT NOT NULL,
    lane TEXT NOT NULL, received_at TEXT NOT NULL)"""


class _SqliteTransaction:
    row_lock = share_lock = ""  # one writer: what it read stays as it is
    now = "strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')"

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        return self._connection.execute(sql, tuple(parameters)).fetchall()

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        self._connection.executemany(sql, [tuple(row) for row in rows])


class SqliteSqlDatabase:
    """The SqlDatabase of `sql_state` over one SQLite file."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def write(self, work: Callable[[Transaction], T]) -> Awaitable[T]:
        """Run in the writer's transaction."""
        return self._database.write(lambda connection: work(_SqliteTransaction(connection)))

    def read(self, work: Callable[[Transaction], T]) -> Awaitable[T]:
        """Run over a reader's snapshot."""
        return self._database.read(lambda connection: work(_SqliteTransaction(connection)))

    def look(self, work: Callable[[Transaction], T]) -> Awaitable[T]:
        """Run statement by statement."""
        return self._database.look(lambda connection: work(_SqliteTransaction(connection)))


def open_state_database(folder: Path) -> Database:
    """Open (or create) `state.db` with the state store's tables and the log."""
    types = ("TEXT", "BLOB", "INTEGER")
    tables = ";\n".join([*create_statements(*types), LOG])
    return Database(folder / "state.db", tables, version=VERSION, additions=";\n".join(added_statements(*types)))


def sqlite_state(database: Database) -> SqlState:
    """Return the State port over `open_state_database`."""
    return SqlState(SqliteSqlDatabase(database))
