"""Epochs and heads of sources; where the columns of a record come from that its own event did not bring."""

from pipeline.backends.postgres_migrations.sql import run

revision, down_revision = "0004", "0003"


def upgrade() -> None:
    """Make what is not there."""
    run(
        """CREATE TABLE IF NOT EXISTS source_epochs (
            source {text} NOT NULL, epoch {int} NOT NULL, starts {text} NOT NULL, at {text} NOT NULL,
            PRIMARY KEY (source, epoch))""",
        """CREATE TABLE IF NOT EXISTS source_heads (
            source {text} NOT NULL, place {text} NOT NULL, head {text} NOT NULL, version {text} NOT NULL,
            at {text} NOT NULL, recent {text} NOT NULL, PRIMARY KEY (source, place))""",
        "CREATE TABLE IF NOT EXISTS borrowed_columns (document {text} PRIMARY KEY, origins {text} NOT NULL)",
    )
