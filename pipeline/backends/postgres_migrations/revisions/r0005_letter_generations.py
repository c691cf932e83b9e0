"""Which generation a dead letter is of: a rebuild that refuses a record says nothing of the live one."""

from pipeline.backends.postgres_migrations.sql import run

revision, down_revision = "0005", "0004"


def upgrade() -> None:
    """Make what is not there."""
    run(
        "CREATE TABLE IF NOT EXISTS letter_generations (letter {text} PRIMARY KEY, generation {text} NOT NULL)",
        "CREATE INDEX IF NOT EXISTS letter_generations_generation ON letter_generations (generation)",
    )
