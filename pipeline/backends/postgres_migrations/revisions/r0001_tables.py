"""The first tables. Databases that were made before there were revisions have them, and are taken over as they are."""

from pipeline.backends.postgres_migrations.sql import run

revision, down_revision = "0001", None


def upgrade() -> None:
    """Make what is not there."""
    run(
        """CREATE TABLE IF NOT EXISTS collections (
            source {text} NOT NULL, collection {text} NOT NULL, positioned {int} NOT NULL, floor {text} NOT NULL,
            floor_version {text} NOT NULL, floor_at {text} NOT NULL,
            PRIMARY KEY (source, collection))""",
        """CREATE TABLE IF NOT EXISTS records (
            document {text} PRIMARY KEY, op {text} NOT NULL, position {text} NOT NULL, version {text} NOT NULL,
            occurred_at {text} NOT NULL, columns {blob} NOT NULL, origins {text} NOT NULL, lane {text} NOT NULL)""",
        """CREATE TABLE IF NOT EXISTS manifests (
            generation {text} NOT NULL, document {text} NOT NULL, position {text} NOT NULL,
            collected {int} NOT NULL, stage {text} NOT NULL, revision {int} NOT NULL, op {text} NOT NULL,
            body {blob} NOT NULL, PRIMARY KEY (generation, document))""",
        "CREATE INDEX IF NOT EXISTS manifests_revision ON manifests (generation, revision)",
        """CREATE TABLE IF NOT EXISTS names (
            generation {text} NOT NULL, name {text} NOT NULL, family {text} NOT NULL, entity {text} NOT NULL,
            document {text} NOT NULL, PRIMARY KEY (generation, name, family, entity, document))""",
        "CREATE INDEX IF NOT EXISTS names_document ON names (generation, document)",
        """CREATE TABLE IF NOT EXISTS relinks (
            generation {text} NOT NULL, document {text} NOT NULL, PRIMARY KEY (generation, document))""",
        """CREATE TABLE IF NOT EXISTS outcomes (
            event {text} PRIMARY KEY, document {text} NOT NULL, position {text} NOT NULL, outcome {text} NOT NULL)""",
        "CREATE INDEX IF NOT EXISTS outcomes_outcome ON outcomes (outcome)",
        """CREATE TABLE IF NOT EXISTS dead_letters (
            id {text} PRIMARY KEY, event {text} NOT NULL, code {text} NOT NULL, reason {text} NOT NULL,
            document {text} NOT NULL, position {text} NOT NULL, stage {text} NOT NULL, payload {blob} NOT NULL,
            headers {text} NOT NULL, at {text} NOT NULL, attempts {int} NOT NULL, resolved {int} NOT NULL)""",
        "CREATE INDEX IF NOT EXISTS dead_letters_document ON dead_letters (document)",
        "CREATE TABLE IF NOT EXISTS offsets (consumer {text} PRIMARY KEY, value {int} NOT NULL)",
        "CREATE TABLE IF NOT EXISTS access_classes (id {text} PRIMARY KEY, rule {text} NOT NULL)",
        """CREATE TABLE IF NOT EXISTS generations (
            name {text} PRIMARY KEY, state {text} NOT NULL, created_at {text} NOT NULL, versions {text} NOT NULL)""",
        """CREATE TABLE IF NOT EXISTS cache (
            kind {text} NOT NULL, key {text} NOT NULL, value {blob} NOT NULL, PRIMARY KEY (kind, key))""",
        "DROP TABLE IF EXISTS schema_version",  # what came before alembic's own mark
    )
