"""What every reranker keeps."""

import asyncio
import math
import time

import pytest

from pipeline.errors import BackendUnavailable, ModelFailed
from pipeline.ports.reranker import Reranker, RerankPassage, RerankQuestion
from tests.contracts.texts import POISON

QUESTION = RerankQuestion(text="駐車ブレーキの摩耗", terms=("駐車", "ブレーキ", "摩耗"))
BRAKE = RerankPassage(
    text="フォークリフトの駐車ブレーキの摩耗を直した。", title="点検", terms=("駐車", "ブレーキ", "摩耗")
)
LUNCH = RerankPassage(text="社員食堂の昼食の献立が変わった。", title="献立", terms=("昼食", "献立"))
BUDGET_S = 10.0


class RerankerContract:
    """Subclasses give the fixture `reranker`."""

    def test_it_names_its_model(self, reranker: Reranker) -> None:
        assert reranker.model

    async def test_no_passages_no_scores(self, reranker: Reranker) -> None:
        assert await reranker.rerank(QUESTION, [], budget_s=BUDGET_S) == []

    async def test_what_answers_stands_higher_wherever_it_stood(self, reranker: Reranker) -> None:
        for passages in ([BRAKE, LUNCH], [LUNCH, BRAKE]):
            scores = await reranker.rerank(QUESTION, passages, budget_s=BUDGET_S)
            assert scores[passages.index(BRAKE)] > scores[passages.index(LUNCH)]

    async def test_one_finite_score_per_passage_in_their_order(self, reranker: Reranker) -> None:
        passages = [LUNCH] * 69 + [BRAKE]
        scores = await reranker.rerank(QUESTION, passages, budget_s=BUDGET_S)
        assert len(scores) == 70 and all(math.isfinite(score) for score in scores)
        assert scores[69] == max(scores) > max(scores[:69])

    async def test_the_same_is_scored_the_same(self, reranker: Reranker) -> None:
        once, again = [await reranker.rerank(QUESTION, [BRAKE, LUNCH], budget_s=BUDGET_S) for _ in range(2)]
        assert once == again

    async def test_many_at_once(self, reranker: Reranker) -> None:
        calls = [reranker.rerank(QUESTION, [BRAKE, LUNCH], budget_s=BUDGET_S) for _ in range(8)]
        assert len({tuple(scores) for scores in await asyncio.gather(*calls)}) == 1

    @pytest.mark.parametrize("name", POISON)
    async def test_any_text_works(self, reranker: Reranker, name: str) -> None:
        passage = RerankPassage(text=POISON[name], title=POISON[name][:50])
        scores = await reranker.rerank(RerankQuestion(text=POISON[name]), [passage, BRAKE], budget_s=BUDGET_S)
        assert len(scores) == 2

    async def test_closing_twice(self, reranker: Reranker) -> None:
        await reranker.close()
        await reranker.close()


async def assert_fails(reranker: Reranker, error: type[BackendUnavailable], said: str, budget_s: float = 5.0) -> None:
    """Assert that it fails so, says so, and stops within its budget."""
    began = time.monotonic()
    with pytest.raises(error, match=said) as caught:
        await reranker.rerank(QUESTION, [BRAKE, LUNCH], budget_s=budget_s)
    assert isinstance(caught.value, ModelFailed) == (error is ModelFailed)
    assert time.monotonic() - began < budget_s + 0.5
