"""Spellings of one thing find each other, and those of two things do not, whatever the index."""

from msgspec.structs import replace

from api.retrieval.lexical import find_words
from pipeline.ports.chunk_index import ChunkFilter, ChunkIndex, LexicalQuery
from tests.contracts.chunk_examples import chunk
from tests.language.codes import questions, questions_with_a_topic, texts
from tests.language.pairs import analysis, both_ways, chunks_of, question, read

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

    async def test_an_identifier_finds_the_very_chunks_that_hold_it(self, index: ChunkIndex) -> None:
        analyze = analysis().terms.analyze
        await index.stage(
            [
                chunk(f"codes/notes/{key}", document=key, text=body, analysis=replace(analyze(body), mentions=()))
                for key, body in texts().items()
            ]
        )
        asked = [*questions(), *questions_with_a_topic()]
        assert len(asked) >= 200
        wrong: list[str] = []
        for typed in asked:
            (code,) = analyze(typed.question).identifiers
            held = await index.lexical(LexicalQuery(terms=(), identifiers=(code,)), ChunkFilter(), 9)
            found = await find_words(index, question(typed.question), ChunkFilter(), 50)
            best = next(hit.id for hit in found if hit.id in {hit.id for hit in held})
            if best not in typed.right or not typed.right <= {hit.id for hit in held} or len(held) != 2:
                wrong.append(typed.question)
        assert not wrong, wrong
