"""What the environment may say."""

import pytest

from pipeline.settings import Settings


def test_several_texts_are_separated_by_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHINSEN_ANONYMOUS_GROUPS", "all-staff, hr,")
    monkeypatch.setenv("SHINSEN_ALLOWED_HOSTS", "")
    settings = Settings()
    assert (settings.anonymous_groups, settings.allowed_hosts) == (("all-staff", "hr"), ())
