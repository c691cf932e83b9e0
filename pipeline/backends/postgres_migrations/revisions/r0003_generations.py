"""Rebuilds of generations, and which generation was live when."""

from pipeline.backends.postgres_migrations.sql import run

revision, down_revision = "0003", "0002"


def upgrade() -> None:
    """Make what is not there."""
    run(
        "CREATE TABLE IF NOT EXISTS rebuilds (generation {text} PRIMARY KEY, body {text} NOT NULL)",
        """CREATE TABLE IF NOT EXISTS promotions (
            number {int} PRIMARY KEY, generation {text} NOT NULL, at {text} NOT NULL)""",
    )
