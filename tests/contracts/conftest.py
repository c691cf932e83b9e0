"""Fixtures that several contracts share."""

from collections.abc import Iterator

import pytest

from tests.contracts.model_http import ModelHttp


@pytest.fixture
def server() -> Iterator[ModelHttp]:
    """A model server on loopback."""
    running = ModelHttp()
    yield running
    running.stop()
