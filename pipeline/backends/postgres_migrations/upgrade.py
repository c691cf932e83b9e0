"""Brings a database to the tables that this program reads; one transaction, one program at a time."""

from pathlib import Path

import psycopg
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, NullPool, create_engine, text
from sqlalchemy.exc import DBAPIError

from pipeline.backends.postgres_migrations.known import VERSION_TABLE, refuse_newer

HERE = Path(__file__).parent
SETTINGS = "-c lock_timeout=60000 -c statement_timeout=600000"
"""Milliseconds: another program's migration, and the longest statement of one."""


def migrate(url: str) -> None:
    """Run the revisions that the database lacks. Blocks.

    Of several programs that start at once one runs them, and the others wait and find nothing left to do. Raises
    InvalidConfiguration when the database is newer than this program, psycopg.Error as the server says it.
    """
    engine = create_engine(
        "postgresql+psycopg://",
        creator=lambda: psycopg.connect(url, connect_timeout=5, options=SETTINGS),
        poolclass=NullPool,
    )
    try:
        with engine.begin() as connection:
            connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('shinsen schema'))"))
            _upgrade(connection)
    except DBAPIError as error:
        raise error.orig if isinstance(error.orig, psycopg.Error) else error from error


def _upgrade(connection: Connection) -> None:
    standing = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE}).get_current_revision()
    refuse_newer(standing or "")
    config = Config()
    config.set_main_option("script_location", _literal(HERE))
    config.set_main_option("version_locations", _literal(HERE / "revisions"))
    config.set_main_option("path_separator", "newline")
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def _literal(path: Path) -> str:
    """Return a path as a value of an INI file, where a percent sign would be interpolated."""
    return str(path).replace("%", "%%")
