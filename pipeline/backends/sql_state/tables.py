"""The tables of the state store. `{text}`, `{blob}`, `{int}` are the dialect's types.

To change them: put what is new into ADDED, so that SQLite files that were made before get it too (`CREATE ... IF NOT
EXISTS`), and write the same step for PostgreSQL as a revision: a new file
`pipeline/backends/postgres_migrations/revisions/rNNNN_words.py` with the next free number, `revision` and
`down_revision` (the number before), and `upgrade()` that hands the same SQL to `run`. What changes a table that is
there (`ALTER TABLE ... ADD COLUMN ... {int} NOT NULL DEFAULT 0`) goes into TABLES and into a revision, and VERSION is
raised: SQLite refuses data of another one. Revisions only add: older workers go on beside them.
`tests/contracts/test_postgres_migrations.py` fails while the two differ.
"""

VERSION = 1

TABLES = (
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
)

ADDED = (
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
    "CREATE TABLE IF NOT EXISTS rebuilds (generation {text} PRIMARY KEY, body {text} NOT NULL)",
    """CREATE TABLE IF NOT EXISTS promotions (
        number {int} PRIMARY KEY, generation {text} NOT NULL, at {text} NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS source_epochs (
        source {text} NOT NULL, epoch {int} NOT NULL, starts {text} NOT NULL, at {text} NOT NULL,
        PRIMARY KEY (source, epoch))""",
    """CREATE TABLE IF NOT EXISTS source_heads (
        source {text} NOT NULL, place {text} NOT NULL, head {text} NOT NULL, version {text} NOT NULL,
        at {text} NOT NULL, recent {text} NOT NULL, PRIMARY KEY (source, place))""",
    "CREATE TABLE IF NOT EXISTS borrowed_columns (document {text} PRIMARY KEY, origins {text} NOT NULL)",
    "CREATE TABLE IF NOT EXISTS letter_generations (letter {text} PRIMARY KEY, generation {text} NOT NULL)",
    "CREATE INDEX IF NOT EXISTS letter_generations_generation ON letter_generations (generation)",
    """CREATE TABLE IF NOT EXISTS index_repairs (
        generation {text} NOT NULL, store {text} NOT NULL, documents {int} NOT NULL,
        PRIMARY KEY (generation, store))""",
    """CREATE TABLE IF NOT EXISTS unrefined (
        generation {text} NOT NULL, document {text} NOT NULL, PRIMARY KEY (generation, document))""",
)
"""What came later; files that were made before get it when they are opened. Nothing that is there is changed."""


def create_statements(text: str, blob: str, integer: str) -> list[str]:
    """Return the DDL for one dialect."""
    return [table.format(text=text, blob=blob, int=integer) for table in (*TABLES, *ADDED)]


def added_statements(text: str, blob: str, integer: str) -> list[str]:
    """Return the DDL that is safe to run again at each opening."""
    return [table.format(text=text, blob=blob, int=integer) for table in ADDED]
