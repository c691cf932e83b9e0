"""Exact offsets of a question's words in a text, whatever their width and case."""

import re
import unicodedata
from collections.abc import Iterator, Sequence, Set

from api.retrieval.passages import Passage
from api.retrieval.question import AnalyzedQuestion
from pipeline.ports.models import Analyzer
from pipeline.text.normalize import fold, source_span

_RUNS = re.compile(r"[一-鿿々〆]+|[ァ-ヺー]{2,}|[a-z0-9][a-z0-9._/-]*[a-z0-9]")
_MOST_SPANS = 64


def words_of(question: AnalyzedQuestion) -> tuple[str, ...]:
    """Return what to look for: identifiers, index terms, synonyms, and runs of one script; longest first."""
    synonyms = (term for term, _ in question.form.synonyms)
    folded = [fold(word)[0] for word in (*question.analysis.identifiers, *question.analysis.terms, *synonyms)]
    runs = _RUNS.findall(fold(question.text)[0])
    words = {word for word in (*folded, *runs) if len(word) > 1 or (word and unicodedata.category(word) == "Lo")}
    return tuple(sorted(words, key=lambda word: (-len(word), word)))


async def highlighted(
    analyzer: Analyzer, question: AnalyzedQuestion, passages: Sequence[Passage]
) -> list[list[tuple[int, int]]]:
    """Return the highlights of each passage, also where another spelling or a synonym stands.

    Most passages hold the words as they were typed. Only the others are analyzed again, for the places of terms.
    """
    words = words_of(question)
    wanted = {*question.form.terms, *question.analysis.identifiers, *(term for term, _ in question.form.synonyms)}
    folded = [fold(passage.text) for passage in passages]
    hidden = [p.text for p, (text, _) in zip(passages, folded, strict=True) if _hides(text, wanted & p.terms, words)]
    placed = dict(zip(hidden, await analyzer.places(hidden), strict=True)) if hidden else {}
    return [
        _marked(*one, words, [(t.start, t.end) for t in placed.get(p.text, ()) if t.term in wanted])
        for p, one in zip(passages, folded, strict=True)
    ]


def _hides(folded: str, terms: Set[str], words: Sequence[str]) -> bool:
    """Say whether a term of the text is spelled in a way that no typed word finds."""
    typed = [word for word in words if word in folded]
    return any(term not in folded and not any(word.startswith(term) for word in typed) for term in terms)


def _marked(
    folded: str, offsets: Sequence[int], words: Sequence[str], more: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    """Return merged spans of the words in the text and of `more`, in order."""
    there = [word for word in words if word in folded]
    found = {source_span(offsets, start, end) for word in there for start, end in occurrences(folded, word)}
    merged: list[tuple[int, int]] = []
    for start, end in sorted({*found, *more}):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged[:_MOST_SPANS]


def occurrences(folded: str, word: str) -> Iterator[tuple[int, int]]:
    """Yield where the word stands in the folded text, not as a part of a longer code (`f-17` in `f-170`)."""
    at = folded.find(word) if word else -1
    first, last, size = _code(word[:1]), _code(word[-1:]), len(word)
    while at >= 0:
        end = at + size
        if not (first and _glued(folded, at)) and not (last and _glued(folded, end)):
            yield at, end
        at = folded.find(word, end)


def _glued(text: str, at: int) -> bool:
    """Say whether a code goes on across this place."""
    return 0 < at < len(text) and _code(text[at - 1]) and _code(text[at])


def _code(character: str) -> bool:
    return character.isascii() and (character.isalnum() or (character != "" and character in "-_"))
