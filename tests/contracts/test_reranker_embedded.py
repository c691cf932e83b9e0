"""The reranker without a model keeps what every reranker keeps."""

import pytest

from pipeline.ports.reranker import Reranker
from pipeline.second_stage_wiring import reranker_of
from pipeline.settings import Settings
from tests.contracts.reranker import RerankerContract


class TestEmbedded(RerankerContract):
    @pytest.fixture
    def reranker(self) -> Reranker:
        found = reranker_of(Settings(reranker="embedded"))
        assert found
        return found
