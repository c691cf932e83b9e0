"""The encoders behind HTTP, against a real server in each shape, and against one that misbehaves."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.backends.cache_sqlite import SqliteCache
from pipeline.backends.encoders_http import JinaMultiVectorEncoder, TeiSparseEncoder
from pipeline.backends.model_server import ModelServer
from pipeline.errors import BackendUnavailable, InvalidConfiguration, ModelFailed
from pipeline.further_lists import LateScorer, SparseScorer
from pipeline.further_wiring import further_lists
from pipeline.ports.further_list import Scorer
from pipeline.settings import Settings
from pipeline.steps.late_interaction import dot, max_sim, pack_matrix, pack_sparse, unpack_matrix, unpack_sparse
from tests.contracts.encoders import BRAKE, LUNCH, QUESTION, MultiVectorEncoderContract, SparseEncoderContract
from tests.contracts.model_http import Answer, ModelHttp, slow

DIMENSIONS = 16


def sparse(server: ModelHttp) -> TeiSparseEncoder:
    return TeiSparseEncoder(ModelServer("sparse encoder", server.url), "splade")


def late(server: ModelHttp) -> JinaMultiVectorEncoder:
    return JinaMultiVectorEncoder(ModelServer("multi-vector encoder", server.url), "colbert", DIMENSIONS)


class TestTeiSparse(SparseEncoderContract):
    @pytest.fixture
    async def encoder(self, server: ModelHttp) -> AsyncIterator[TeiSparseEncoder]:
        encoder = sparse(server)
        yield encoder
        await encoder.close()
        await encoder.close()


class TestJinaMultiVector(MultiVectorEncoderContract):
    @pytest.fixture
    async def encoder(self, server: ModelHttp) -> AsyncIterator[JinaMultiVectorEncoder]:
        encoder = late(server)
        yield encoder
        await encoder.close()
        await encoder.close()


@pytest.fixture
async def cache(tmp_path: Path) -> AsyncIterator[SqliteCache]:
    cache = SqliteCache(tmp_path / "cache.db")
    yield cache
    await cache.close()


def body(answer: Any) -> Answer:
    return lambda path, request: (200, answer)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"{not json",
        [],
        {},
        None,
        [[{"index": 0}]],
        [[{"index": -1, "value": 1.0}]],
        b'[[{"index": 0, "value": NaN}]]',
        b'[[{"index": 0, "value": 1e999}]]',
        [[{"index": 0, "value": "1"}]],
        [[], []],
    ],
)
async def test_sparse_answers_that_are_none(server: ModelHttp, answer: Any) -> None:
    server.answer = body(answer)
    with pytest.raises(ModelFailed, match=r"shape|gave"):
        await sparse(server).query(QUESTION, budget_s=5)


ROW = [1.0] * DIMENSIONS


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        {"data": []},
        {"data": None},
        {"data": [{"index": 1, "embeddings": [ROW]}]},
        {"data": [{"index": 0, "embeddings": [ROW]}] * 2},
        {"data": [{"index": 0, "embeddings": []}]},
        {"data": [{"index": 0, "embeddings": [ROW, ROW[:-1]]}]},
        {"data": [{"index": 0, "embeddings": [[0.0] * DIMENSIONS]}]},
        {"data": [{"index": 0, "embeddings": [[1e308] * DIMENSIONS]}]},
        {"data": [{"index": 0, "embeddings": ROW}]},
        b'{"data": [{"index": 0, "embeddings": [[NaN]]}]}',
    ],
)
async def test_matrices_that_are_none(server: ModelHttp, answer: Any) -> None:
    server.answer = body(answer)
    with pytest.raises(ModelFailed, match=r"shape|gave"):
        await late(server).query(QUESTION, budget_s=5)


async def test_what_is_kept_of_an_answer_is_bounded(server: ModelHttp) -> None:
    server.answer = body([[{"index": n, "value": float(n)} for n in range(5_000)]])
    vector = await sparse(server).query(QUESTION, budget_s=5)
    assert len(vector) == 512 and min(vector) == 4_488  # the largest weights
    server.answer = body({"data": [{"embeddings": [ROW] * 3_000}]})
    assert (await late(server).query(QUESTION, budget_s=5)).shape == (512, DIMENSIONS)


@pytest.mark.parametrize("made", [sparse, late])
async def test_a_slow_or_failing_server(server: ModelHttp, made: Any) -> None:
    for answer, error in ((slow, BackendUnavailable), (lambda path, request: (500, {}), BackendUnavailable)):
        server.answer = answer
        began = time.monotonic()
        with pytest.raises(error):
            await made(server).passages([BRAKE] * 40, budget_s=0.3)
        assert time.monotonic() - began < 0.8


@pytest.mark.parametrize("late_interaction", [False, True])
async def test_passages_are_encoded_once_per_content_and_model(
    server: ModelHttp, cache: SqliteCache, late_interaction: bool
) -> None:
    def scorer() -> Scorer:
        return LateScorer(late(server), cache) if late_interaction else SparseScorer(sparse(server), cache)

    first = await scorer().scores(QUESTION, [BRAKE, LUNCH, BRAKE], budget_s=10)
    assert first[0] == first[2] > first[1]
    server.asked.clear()
    assert await scorer().scores(QUESTION, [BRAKE, LUNCH, BRAKE], budget_s=10) == first
    assert len(server.asked) == 1  # the question


async def test_what_was_encoded_in_time_is_there_the_next_time(server: ModelHttp, cache: SqliteCache) -> None:
    """A cold cache grows over several questions, each within its budget."""
    answer, texts = server.answer, [f"第{n}号機の点検" for n in range(48)]

    def unhurried(path: str, request: dict[str, Any]) -> tuple[int, Any]:
        time.sleep(0.15 if len(request["inputs"]) > 1 else 0)
        return answer(path, request)

    server.answer = unhurried
    scorer, late_ones = SparseScorer(sparse(server), cache), 0
    for _ in range(20):
        try:
            async with asyncio.timeout(0.4):
                assert len(await scorer.scores("点検", texts, budget_s=0.4)) == 48
                break
        except (TimeoutError, BackendUnavailable):
            late_ones += 1
    assert late_ones < 20
    assert len(await scorer.scores("点検", texts, budget_s=5)) == 48


def test_max_sim_is_what_the_paper_says() -> None:
    rng = np.random.default_rng(0)

    def unit(rows: int) -> Any:
        drawn = rng.normal(size=(rows, 8)).astype(np.float32)
        return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)

    query, passages = unit(5), [unit(rows) for rows in (1, 7, 3)]
    slowly = [np.mean([max(float(q @ p) for p in passage) for q in query]) for passage in passages]
    assert np.allclose(max_sim(query, passages), slowly, atol=1e-5) and max_sim(query, []) == []
    packed = [unpack_matrix(pack_matrix(passage)) for passage in passages]
    assert np.allclose(max_sim(query, packed), slowly, atol=0.01)
    assert len(pack_matrix(unit(300))) < 300 * (8 + 2) + 20


def test_sparse_vectors_survive_the_cache() -> None:
    vector = {0: 1.5, 7: -0.25, 30_000: 2.0}
    assert unpack_sparse(pack_sparse(vector)) == vector and unpack_sparse(pack_sparse({})) == {}
    assert dot(vector, {7: 4.0, 8: 1.0}) == -1.0 and dot({}, vector) == 0.0


@pytest.mark.parametrize("name", ["sparse", "late"])
async def test_settings_of_a_list(name: str, cache: SqliteCache) -> None:
    given: dict[str, Any] = {f"{name}_url": "http://h", f"{name}_model": "m"}
    assert further_lists(Settings.model_validate(given), cache) == ()
    (one,) = further_lists(Settings.model_validate({**given, f"{name}_weight": 0.2}), cache)
    assert (one.name, one.weight) == (name, 0.2)
    await one.scorer.close()
    with pytest.raises(InvalidConfiguration, match=f"SHINSEN_{name.upper()}_URL"):
        further_lists(Settings.model_validate({f"{name}_weight": 0.2}), cache)
    with pytest.raises(InvalidConfiguration, match=r"http\(s\)"):
        further_lists(Settings.model_validate({**given, f"{name}_weight": 0.2, f"{name}_url": "file:///x"}), cache)
