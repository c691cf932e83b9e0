"""Several writers of one generation: their marks, numbered changes of names, indexes of what is unfinished."""

from pipeline.backends.postgres_migrations.sql import run

revision, down_revision = "0002", "0001"


def upgrade() -> None:
    """Make what is not there."""
    run(
        """CREATE TABLE IF NOT EXISTS staging (
            generation {text} NOT NULL, document {text} NOT NULL, writer {text} NOT NULL, since {text} NOT NULL,
            PRIMARY KEY (generation, document, writer))""",
        """CREATE TABLE IF NOT EXISTS name_changes (
            generation {text} NOT NULL, name {text} NOT NULL, number {int} NOT NULL, looked {int} NOT NULL,
            PRIMARY KEY (generation, name))""",
        "CREATE INDEX IF NOT EXISTS name_changes_number ON name_changes (generation, number)",
        "CREATE INDEX IF NOT EXISTS name_changes_unlooked ON name_changes (generation, number) WHERE looked = 0",
        "CREATE TABLE IF NOT EXISTS name_counters (generation {text} PRIMARY KEY, number {int} NOT NULL)",
        "CREATE INDEX IF NOT EXISTS records_unannounced ON records (document) WHERE origins <> '[]'",
        """CREATE INDEX IF NOT EXISTS manifests_unfinished ON manifests (generation, document)
            WHERE collected = 0 OR stage = 'text'""",
    )
