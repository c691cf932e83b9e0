"""What every sparse and every multi-vector encoder keeps."""

import math

import numpy as np
import pytest

from pipeline.ports.multi_vector_encoder import MultiVectorEncoder
from pipeline.ports.sparse_encoder import SparseEncoder
from pipeline.steps.late_interaction import dot, max_sim
from tests.contracts.texts import POISON

BRAKE = "フォークリフトの駐車ブレーキの摩耗を直した。"
LUNCH = "社員食堂の昼食の献立が変わった。"
QUESTION = "駐車ブレーキの摩耗"


class SparseEncoderContract:
    """Subclasses give the fixture `encoder`."""

    def test_it_names_its_model(self, encoder: SparseEncoder) -> None:
        assert encoder.model

    async def test_one_vector_per_text_in_order_whatever_the_batch(self, encoder: SparseEncoder) -> None:
        texts = [BRAKE, LUNCH] * 20
        together = await encoder.passages(texts, budget_s=10)
        assert together == [(await encoder.passages([text], budget_s=10))[0] for text in (BRAKE, LUNCH)] * 20
        assert await encoder.passages([], budget_s=10) == []

    async def test_what_answers_is_nearer(self, encoder: SparseEncoder) -> None:
        asked = await encoder.query(QUESTION, budget_s=10)
        brake, lunch = await encoder.passages([BRAKE, LUNCH], budget_s=10)
        assert dot(asked, brake) > dot(asked, lunch)

    @pytest.mark.parametrize("name", POISON)
    async def test_any_text_works(self, encoder: SparseEncoder, name: str) -> None:
        for vector in [*await encoder.passages([POISON[name]], budget_s=10), await encoder.query("", budget_s=10)]:
            assert all(math.isfinite(weight) for weight in vector.values())


class MultiVectorEncoderContract:
    """Subclasses give the fixture `encoder`."""

    def test_it_names_its_model(self, encoder: MultiVectorEncoder) -> None:
        assert encoder.model and encoder.dimensions > 0

    async def test_one_matrix_of_unit_rows_per_text_in_order(self, encoder: MultiVectorEncoder) -> None:
        texts = [BRAKE, LUNCH] * 20
        together = await encoder.passages(texts, budget_s=10)
        alone = [(await encoder.passages([text], budget_s=10))[0] for text in (BRAKE, LUNCH)] * 20
        assert all(np.array_equal(one, other) for one, other in zip(together, alone, strict=True))
        assert all(one.dtype == np.float32 and one.shape[1] == encoder.dimensions for one in together)
        assert np.allclose(np.linalg.norm(together[0], axis=1), 1, atol=1e-5)
        assert await encoder.passages([], budget_s=10) == []

    async def test_what_answers_is_nearer(self, encoder: MultiVectorEncoder) -> None:
        asked = await encoder.query(QUESTION, budget_s=10)
        brake, lunch = max_sim(asked, await encoder.passages([BRAKE, LUNCH], budget_s=10))
        assert brake > lunch

    @pytest.mark.parametrize("name", POISON)
    async def test_any_text_works(self, encoder: MultiVectorEncoder, name: str) -> None:
        for matrix in [*await encoder.passages([POISON[name]], budget_s=10), await encoder.query("", budget_s=10)]:
            assert len(matrix) > 0 and np.isfinite(matrix).all()
