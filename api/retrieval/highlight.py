"""Exact offsets of a question's words in a text, whatever their width and case."""

import re
import unicodedata
from collections.abc import Iterator, Sequence

from api.retrieval.question import AnalyzedQuestion
from pipeline.text.normalize import fold, source_span

_RUNS = re.compile(r"[一-鿿々〆]+|[ァ-ヺー]{2,}|[a-z0-9][a-z0-9._/-]*[a-z0-9]")
_MOST_SPANS = 64


def words_of(question: AnalyzedQuestion) -> tuple[str, ...]:
    """Return what to look for: identifiers, index terms, and runs of one script; longest first."""
    analysis = question.analysis
    folded = [fold(word)[0] for word in (*analysis.identifiers, *analysis.terms)]
    runs = _RUNS.findall(fold(question.text)[0])
    words = {word for word in (*folded, *runs) if len(word) > 1 or (word and unicodedata.category(word) == "Lo")}
    return tuple(sorted(words, key=lambda word: (-len(word), word)))


def highlights(text: str, words: Sequence[str]) -> list[tuple[int, int]]:
    """Return merged spans of the words in the text, in order."""
    folded, offsets = fold(text)
    spans = sorted({source_span(offsets, start, end) for word in words for start, end in occurrences(folded, word)})
    merged: list[tuple[int, int]] = []
    for start, end in spans:
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged[:_MOST_SPANS]


def occurrences(folded: str, word: str) -> Iterator[tuple[int, int]]:
    """Yield where the word stands in the folded text, not as a part of a longer code (`f-17` in `f-170`)."""
    at = folded.find(word) if word else -1
    while at >= 0:
        end = at + len(word)
        if not (_glued(folded, at) or _glued(folded, end)):
            yield at, end
        at = folded.find(word, end)


def _glued(text: str, at: int) -> bool:
    """Say whether a code goes on across this place."""
    return 0 < at < len(text) and _code(text[at - 1]) and _code(text[at])


def _code(character: str) -> bool:
    return character.isascii() and (character.isalnum() or character in "-_")
