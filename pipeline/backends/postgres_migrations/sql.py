"""How a revision runs its SQL."""

from alembic import op

TYPES = {"text": 'TEXT COLLATE "C"', "blob": "BYTEA", "int": "BIGINT"}
"""What tables.py calls `{text}`, `{blob}`, `{int}`. Text compares by bytes, as the ports ask for, whatever locale the
cluster was made with."""


def run(*statements: str) -> None:
    """Run statements in the revision's transaction; `{text}`, `{blob}`, `{int}` are PostgreSQL's types."""
    for statement in statements:
        op.execute(statement.format(**TYPES))
