"""Which documents were published without the vectors of their sentences and are to get them."""

from pipeline.backends.postgres_migrations.sql import run

revision, down_revision = "0007", "0006"


def upgrade() -> None:
    """Make what is not there."""
    run(
        """CREATE TABLE IF NOT EXISTS unrefined (
        generation {text} NOT NULL, document {text} NOT NULL, PRIMARY KEY (generation, document))""",
    )
