"""The state store in PostgreSQL: the SQL of `sql_state` over a few connections."""

from pipeline.backends.postgres import PostgresDatabase
from pipeline.backends.sql_state.state import SqlState
from pipeline.backends.sql_state.transaction import SqlDatabase


def open_postgres_state(url: str, *, connections: int = 4) -> PostgresDatabase:
    """Return the database of the state store; it connects at the first use."""
    return PostgresDatabase(url, connections=connections)


def postgres_state(database: SqlDatabase) -> SqlState:
    """Return the State port over `open_postgres_state`."""
    return SqlState(database)
