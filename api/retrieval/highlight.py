"""Exact offsets of a question's words in a text, whatever their width and case."""

import re
import string
import unicodedata
from collections.abc import Iterator, Sequence

import msgspec

from api.retrieval.passages import Passage
from api.retrieval.question import AnalyzedQuestion
from pipeline.ports.models import Analyzer
from pipeline.text.normalize import fold, source_span

_RUNS = re.compile(r"[一-鿿々〆]+|[ァ-ヺー]{2,}|[a-z0-9][a-z0-9._/-]*[a-z0-9]")
_MOST_SPANS = 64
_CODE = frozenset(string.ascii_letters + string.digits + "-_")
"""What codes are written with."""


def words_of(question: AnalyzedQuestion) -> tuple[str, ...]:
    """Return what to look for: identifiers, index terms, synonyms, and runs of one script; longest first."""
    synonyms = (term for term, _ in question.form.synonyms)
    folded = [fold(word)[0] for word in (*question.analysis.identifiers, *question.analysis.terms, *synonyms)]
    runs = _RUNS.findall(fold(question.text)[0])
    words = {word for word in (*folded, *runs) if len(word) > 1 or (word and unicodedata.category(word) == "Lo")}
    return tuple(sorted(words, key=lambda word: (-len(word), word)))


class _Sought(msgspec.Struct, frozen=True):
    """What is looked for in each text."""

    words: tuple[str, ...]
    terms: frozenset[str]
    showing: dict[str, tuple[tuple[str, ...], tuple[str, ...]]]
    """The words that show a term where they are marked: those that begin with it, and those that hold what the question
    writes for it, where that is something else."""


async def highlighted(
    analyzer: Analyzer, question: AnalyzedQuestion, passages: Sequence[Passage]
) -> list[list[tuple[int, int]]]:
    """Return the highlights of each passage, also where another spelling or a synonym stands.

    Most passages hold the words as they were typed. Only the others are analyzed again, for the places of terms.
    """
    sought = _sought(question)
    folded = [fold(passage.text) for passage in passages]
    typed = [[word for word in sought.words if word in text] for text, _ in folded]
    hidden = [p.text for p, (text, _) in zip(passages, folded, strict=True) if _hides(p, text, sought)]
    placed = dict(zip(hidden, await analyzer.places(hidden), strict=True)) if hidden else {}
    return [
        _marked(*one, words, [(t.start, t.end) for t in placed.get(p.text, ()) if t.term in sought.terms])
        for p, one, words in zip(passages, folded, typed, strict=True)
    ]


def _sought(question: AnalyzedQuestion) -> _Sought:
    words, form = words_of(question), question.form
    terms = frozenset((*form.terms, *question.analysis.identifiers, *(term for term, _ in form.synonyms)))
    written: dict[str, tuple[str, ...]] = {}
    for term, spelling in form.spelled:
        written[term] = (*written.get(term, ()), *(word for word in words if spelling in word))
    showing = {term: (tuple(w for w in words if w.startswith(term)), written.get(term, ())) for term in terms}
    return _Sought(words=words, terms=terms, showing=showing)


def _hides(passage: Passage, folded: str, sought: _Sought) -> bool:
    """Say whether a term stands in the text more often than words are found that show it."""
    counts = dict.fromkeys(sought.terms & passage.unordered, 1)
    for term in passage.sequence:
        if term in sought.terms:
            counts[term] = counts.get(term, 0) + 1
    return any(
        number > sum(max(map(folded.count, words), default=0) for words in sought.showing[term])
        for term, number in counts.items()
    )


def _marked(
    folded: str, offsets: Sequence[int], words: Sequence[str], more: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    """Return merged spans of the words, which are all in the text, and of `more`, in order."""
    found = {source_span(offsets, *place) for word in words for place in occurrences(folded, word)}
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
    first, last, size = word[:1] in _CODE, word[-1:] in _CODE, len(word)
    while at >= 0:
        end = at + size
        if not (first and _glued(folded, at)) and not (last and _glued(folded, end)):
            yield at, end
        at = folded.find(word, end)


def _glued(text: str, at: int) -> bool:
    """Say whether a code goes on across this place."""
    return 0 < at < len(text) and text[at - 1] in _CODE and text[at] in _CODE
