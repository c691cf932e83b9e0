"""How many documents an index did not hold as their manifests say, so that they were published again."""

from pipeline.backends.postgres_migrations.sql import run

revision, down_revision = "0006", "0005"


def upgrade() -> None:
    """Make what is not there."""
    run(
        """CREATE TABLE IF NOT EXISTS index_repairs (
        generation {text} NOT NULL, store {text} NOT NULL, documents {int} NOT NULL,
        PRIMARY KEY (generation, store))""",
    )
