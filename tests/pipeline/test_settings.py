"""What the environment may say."""

from pathlib import Path

import pytest

from pipeline.errors import InvalidConfiguration
from pipeline.settings import Settings


def test_several_texts_are_separated_by_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHINSEN_ANONYMOUS_GROUPS", "all-staff, hr,")
    monkeypatch.setenv("SHINSEN_ALLOWED_HOSTS", "")
    settings = Settings()
    assert (settings.anonymous_groups, settings.allowed_hosts) == (("all-staff", "hr"), ())


@pytest.mark.parametrize("name", ["postgres", "embeddings_key", "reranker_key", "sparse_key", "late_key"])
def test_a_secret_comes_out_of_a_file(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "secret").write_text("postgresql://me:word@host/db\n")
    monkeypatch.setenv(f"SHINSEN_{name.upper()}_FILE", str(tmp_path / "secret"))
    settings = Settings()
    assert getattr(settings, name) == "postgresql://me:word@host/db"
    assert "word" not in repr(settings)


def test_a_secret_given_twice_or_in_no_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHINSEN_POSTGRES_FILE", str(tmp_path / "missing"))
    with pytest.raises(InvalidConfiguration, match=r"SHINSEN_POSTGRES_FILE.*missing.*cannot be read"):
        Settings()
    monkeypatch.setenv("SHINSEN_POSTGRES", "postgresql://me@host/db")
    with pytest.raises(InvalidConfiguration, match="both set"):
        Settings()
