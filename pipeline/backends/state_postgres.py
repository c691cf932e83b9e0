"""The state store in PostgreSQL: the SQL of `sql_state` over a few connections."""

from pipeline.backends.postgres import TYPES, PostgresDatabase
from pipeline.backends.sql_state.state import SqlState
from pipeline.backends.sql_state.tables import VERSION, create_statements


def open_postgres_state(url: str, *, threads: int = 4) -> PostgresDatabase:
    """Return the database of the state store; it connects at the first use."""
    return PostgresDatabase(url, create_statements(**TYPES), name="state", version=VERSION, threads=threads)


def postgres_state(database: PostgresDatabase) -> SqlState:
    """Return the State port over `open_postgres_state`."""
    return SqlState(database)
