"""Spellings of one thing find each other, and those of two things do not, whatever the index."""

import pytest

from pipeline.ports.chunk_index import ChunkIndex
from tests.language.pairs import both_ways, chunks_of, read

SAME, DIFFERENT = read("same.csv"), read("different.csv")
ENOUGH = 0.5
"""Of the score that the typed spelling itself gets."""


class Finding:
    """Subclasses give the fixture `index`, empty."""

    async def test_spellings_of_one_thing_find_each_other(self, index: ChunkIndex) -> None:
        assert len(SAME) >= 120
        await index.stage(list(chunks_of(SAME)))
        found = {str(pair): await both_ways(index, pair) for pair in SAME}
        assert {name: shares for name, shares in found.items() if min(shares) < ENOUGH} == {}

    async def test_spellings_of_two_things_do_not(self, index: ChunkIndex) -> None:
        assert len(DIFFERENT) >= 60
        await index.stage(list(chunks_of(DIFFERENT)))
        found = {str(pair): await both_ways(index, pair) for pair in DIFFERENT}
        assert {name: shares for name, shares in found.items() if max(shares) > 0} == {}


@pytest.mark.parametrize("pairs", [SAME, DIFFERENT])
def test_no_pair_is_there_twice(pairs: list[object]) -> None:
    assert len({str(pair) for pair in pairs}) == len(pairs)
