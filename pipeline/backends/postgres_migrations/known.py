"""Which revisions this program knows. Apart from the upgrade: a database that is up to date costs no alembic."""

from pathlib import Path

from pipeline.errors import InvalidConfiguration

VERSION_TABLE = "shinsen_revision"
"""Alembic's mark: not its usual `alembic_version`, since the database may be another application's too."""
REVISIONS = tuple(sorted(path.name[1:5] for path in (Path(__file__).parent / "revisions").glob("r[0-9]*.py")))
HEAD = REVISIONS[-1]


def refuse_newer(standing: str) -> None:
    """Raise InvalidConfiguration for a revision that this program does not know."""
    if standing and standing not in REVISIONS:
        raise InvalidConfiguration(
            f"PostgreSQL: a newer Shinsen made these tables (revision {standing}, this one knows up to {HEAD});"
            " install that version or a newer one, or use an empty database and replay"
        )
