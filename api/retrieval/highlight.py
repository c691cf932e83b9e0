"""Exact offsets of a question's words in a text, whatever their width and case."""

import re
import string
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

import msgspec

from api.retrieval.passages import Passage
from api.retrieval.question import AnalyzedQuestion
from pipeline.ports.models import Analyzer
from pipeline.text.normalize import fold, source_span

_RUNS = re.compile(r"[一-鿿々〆]+|[ァ-ヺー]{2,}|[a-z0-9][a-z0-9._/-]*[a-z0-9]")
_MOST_SPANS = 64
_CODE = frozenset(string.ascii_letters + string.digits + "-_")
"""What codes are written with."""
_SCRIPTS = (re.compile("[一-鿿々〆]").match, re.compile("[ァ-ヺー]").match)
_DIGITS = frozenset(string.digits)


def words_of(question: AnalyzedQuestion) -> tuple[str, ...]:
    """Return what to look for: identifiers, index terms, synonyms, and runs of one script; longest first."""
    synonyms = (term for term, _ in question.form.synonyms)
    terms = {*question.analysis.identifiers, *question.analysis.terms, *synonyms}
    found = {*(fold(term)[0] for term in terms), *_RUNS.findall(fold(question.text)[0])}
    words = [word for word in found if len(word) > 1 or word in _CODE or _is_letter(word)]
    return tuple(sorted(words, key=lambda word: (-len(word), word)))


class _Sought(msgspec.Struct, frozen=True):
    """What is looked for in each text."""

    words: tuple[str, ...]
    terms: frozenset[str]
    showing: dict[str, tuple[tuple[str, ...], tuple[str, ...]]]
    """The words that show a term where they are marked: those that begin with it, and those that hold what the question
    writes for it, where that is something else."""


class _LookedAt(msgspec.Struct, frozen=True):
    """A passage with the places of the words in its folded text."""

    passage: Passage
    offsets: Sequence[int]
    found: dict[str, list[tuple[int, int]]]


async def highlighted(
    analyzer: Analyzer, question: AnalyzedQuestion, passages: Sequence[Passage]
) -> list[list[tuple[int, int]]]:
    """Return the highlights of each passage, also where another spelling or a synonym stands.

    Most passages hold the words as they were typed. Only the others are analyzed again, for the places of terms.
    """
    sought = _sought(question)
    looked_at = [_look(passage, sought) for passage in passages]
    hidden = [one.passage.text for one in looked_at if _hides(one, sought)]
    placed = dict(zip(hidden, await analyzer.places(hidden), strict=True)) if hidden else {}
    return [
        _marked(one, [(t.start, t.end) for t in placed.get(one.passage.text, ()) if t.term in sought.terms])
        for one in looked_at
    ]


def _look(passage: Passage, sought: _Sought) -> _LookedAt:
    folded, offsets = fold(passage.text)
    there = [word for word in sought.words if word in folded]
    found = {word: places for word in there if (places := occurrences(folded, word))}
    for word in found.keys() & sought.terms:
        inside = [place for place in found[word] if _goes_on(folded, place)]
        if inside and len(found[word]) > _standing(passage, word):
            found[word] = [place for place in found[word] if place not in inside]
    return _LookedAt(passage, offsets, found)


def _standing(passage: Passage, term: str) -> int:
    """Return how often a term stands in the text; of texts that came from records, whether it does."""
    return passage.sequence.count(term) if passage.sequence else int(term in passage.unordered)


def _goes_on(folded: str, place: tuple[int, int]) -> bool:
    """Say whether the same script goes on before or behind the place: there it may be a part of a word (日 of 日本)."""
    start, end = place
    return any(
        script(folded[at - 1]) and script(folded[at])
        for script in _SCRIPTS
        for at in (start, end)
        if 0 < at < len(folded)
    )


def _sought(question: AnalyzedQuestion) -> _Sought:
    words, form = words_of(question), question.form
    terms = frozenset((*form.terms, *question.analysis.identifiers, *(term for term, _ in form.synonyms)))
    written: dict[str, tuple[str, ...]] = {}
    for term, spelling in form.spelled:
        written[term] = (*written.get(term, ()), *(word for word in words if spelling in word))
    showing = {term: (tuple(w for w in words if w.startswith(term)), written.get(term, ())) for term in terms}
    return _Sought(words=words, terms=terms, showing=showing)


def _hides(one: _LookedAt, sought: _Sought) -> bool:
    """Say whether a term stands in the text more often than words are found that show it."""
    found, standing = one.found, list(filter(sought.terms.__contains__, one.passage.sequence))
    standing += sought.terms & one.passage.unordered
    for term in {*standing}:
        number = standing.count(term)
        if number > len(found.get(term, ())):  # else the word itself shows it
            begun, written = sought.showing[term]
            if number > _most(found, begun) + _most(found, written):
                return True
    return False


def _most(found: Mapping[str, Sequence[object]], words: Iterable[str]) -> int:
    """Return how often the most frequent of these words was found."""
    return max([len(found[word]) for word in words if word in found], default=0)


def _marked(one: _LookedAt, more: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return merged spans of the words that were found and of `more`, in order."""
    offsets, spans = one.offsets, {*chain(*one.found.values())}
    if not isinstance(offsets, range):
        spans = {source_span(offsets, start, end) for start, end in spans}
    merged: list[tuple[int, int]] = []
    last = -1
    for start, end in sorted(spans.union(more)):
        if start > last:
            merged.append((start, end))
        elif end > last:
            merged[-1] = (merged[-1][0], end)
        last = max(end, last)
    return merged[:_MOST_SPANS]


def occurrences(folded: str, word: str) -> list[tuple[int, int]]:
    """Return where the word stands in the folded text, not as a part of a longer code or number (`f-17` in `f-170`)."""
    places: list[tuple[int, int]] = []
    at, size = folded.find(word) if word else -1, len(word)
    while at >= 0:
        places.append((at, at + size))
        at = folded.find(word, at + size)
    if places and (word[0] in _CODE or word[-1] in _CODE):
        return [place for place in places if not _glued(folded, place[0]) and not _glued(folded, place[1])]
    return places


def _glued(text: str, at: int) -> bool:
    """Say whether a code goes on across this place, or a number with its fraction."""
    if not 0 < at < len(text):
        return False
    before, after = text[at - 1], text[at]
    if after in ".,":
        return before in _DIGITS and text[at + 1 : at + 2] in _DIGITS
    if before in ".,":
        return after in _DIGITS and text[at - 2 : at - 1] in _DIGITS
    return before in _CODE and after in _CODE


def _is_letter(word: str) -> bool:
    return len(word) == 1 and unicodedata.category(word) == "Lo"
