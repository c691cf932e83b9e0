"""Vectors of sentences, packed to bytes, against what the numbers themselves give."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from pipeline.steps.sentence_vectors import nearest, packed

LENGTH = 24


def unit(numbers: "np.typing.NDArray[np.float64]") -> bytes:
    length = float(np.sqrt((numbers**2).sum()))
    return (numbers / length if length else numbers).astype("<f4").tobytes()


VECTORS = arrays(np.float64, LENGTH, elements=st.floats(-1, 1, width=32)).map(unit)


@given(VECTORS, st.lists(st.lists(VECTORS, max_size=4), max_size=5))
def test_the_nearest_sentence_is_that_of_the_vectors_before_they_were_packed(
    question: bytes, passages: list[list[bytes]]
) -> None:
    found = nearest(question, [b"".join(map(packed, sentences)) for sentences in passages])
    asked = np.frombuffer(question, "<f4")
    expected = [max((float(np.frombuffer(one, "<f4") @ asked) for one in its), default=None) for its in passages]
    assert [one is None for one in found] == [one is None for one in expected]
    for one, other in zip(found, expected, strict=True):
        assert one is None or one == pytest.approx(other, abs=0.03)


def test_vectors_of_another_length_tell_nothing_and_break_nothing() -> None:
    question = unit(np.ones(LENGTH))
    assert nearest(question, [bytes(LENGTH + 1), packed(question), b"", bytes(LENGTH)]) == [None, 1.0, None, 0.0]
    assert nearest(question, []) == []
