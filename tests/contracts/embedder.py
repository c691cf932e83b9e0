"""What every embedder keeps."""

import asyncio

import numpy as np
import pytest

from pipeline.ports.models import Embedder
from tests.contracts.texts import POISON

BRAKE = "フォークリフトの駐車ブレーキが摩耗していた。"
LUNCH = "社員食堂の昼食の献立が変わった。"


class EmbedderContract:
    """Subclasses give the fixture `embedder`."""

    def test_it_names_its_model(self, embedder: Embedder) -> None:
        assert embedder.model
        assert embedder.dimensions == 384

    async def test_no_texts_no_vectors(self, embedder: Embedder) -> None:
        assert await embedder.passages([]) == []

    async def test_unit_vectors_of_float32(self, embedder: Embedder) -> None:
        for data in [*await embedder.passages([BRAKE, LUNCH]), await embedder.query("ブレーキ")]:
            vector = _vector(data)
            assert vector.shape == (embedder.dimensions,)
            assert np.isclose(np.linalg.norm(vector), 1.0, atol=1e-5)

    async def test_one_vector_per_text_in_order_whatever_the_batch(self, embedder: Embedder) -> None:
        texts = [BRAKE, LUNCH, BRAKE, "短い", BRAKE * 3]
        together = await embedder.passages(texts)
        assert together == [(await embedder.passages([text]))[0] for text in texts]
        assert together[0] == together[2] != together[1]

    async def test_the_lane_does_not_change_vectors(self, embedder: Embedder) -> None:
        assert await embedder.passages([BRAKE], lane="bulk") == await embedder.passages([BRAKE], lane="live")

    async def test_many_calls_at_once(self, embedder: Embedder) -> None:
        texts = [f"{n}号機の点検" for n in range(12)]
        one_by_one = await asyncio.gather(*(embedder.passages([text]) for text in texts))
        assert [vectors[0] for vectors in one_by_one] == await embedder.passages(texts)

    async def test_a_question_is_nearer_to_its_passage(self, embedder: Embedder) -> None:
        brake, lunch = map(_vector, await embedder.passages([BRAKE, LUNCH]))
        question = _vector(await embedder.query("ブレーキが摩耗したフォークリフトは?"))
        assert question @ brake > question @ lunch

    @pytest.mark.parametrize("name", POISON)
    async def test_any_text_works(self, embedder: Embedder, name: str) -> None:
        text = POISON[name][:100]
        for data in [*await embedder.passages([text]), await embedder.query(text)]:
            assert np.isclose(np.linalg.norm(_vector(data)), 1.0, atol=1e-5)


def _vector(data: bytes) -> "np.ndarray[tuple[int], np.dtype[np.float32]]":
    return np.frombuffer(data, dtype="<f4")
