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
    spelled: dict[str, list[str]]
    """What the question writes for a term, where that is something else."""

    def shown(self, term: str, found: Mapping[str, Sequence[object]]) -> int:
        """Return how often words were found that show a term where they are marked: those that begin with it, and
        those that hold what the question writes for it."""
        shown = max([len(places) for word, places in found.items() if word.startswith(term)], default=0)
        if spellings := self.spelled.get(term):
            written = [len(places) for word, places in found.items() if any(one in word for one in spellings)]
            shown += max(written, default=0)
        return shown


class _LookedAt(msgspec.Struct, frozen=True):
    """A passage with the places of the words in its folded text."""

    passage: Passage
    offsets: Sequence[int]
    found: dict[str, list[tuple[int, int]]]
    standing: list[str]
    """The terms that are looked for, as often as they stand in the text; of texts that came from records, once."""


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
    standing = [*filter(sought.terms.__contains__, passage.sequence), *(sought.terms & passage.unordered)]
    for word in found.keys() & sought.terms:
        if len(found[word]) > (number := standing.count(word)):
            alone = [place for place in found[word] if not _goes_on(folded, place)]
            sure = [
                place for place in found[word] if place in alone or _neighbours(folded, place, word, passage.sequence)
            ]
            found[word] = sure if len(sure) == number else alone
    return _LookedAt(passage, offsets, found, standing)


def _goes_on(folded: str, place: tuple[int, int]) -> bool:
    """Say whether the same script goes on before or behind the place: there it may be a part of a word (日 of 日本)."""
    start, end = place
    return (start > 0 and _same_script(folded[start - 1], folded[start])) or (
        end < len(folded) and _same_script(folded[end - 1], folded[end])
    )


def _neighbours(folded: str, place: tuple[int, int], term: str, sequence: Sequence[str]) -> bool:
    """Say whether what stands beside a term in the index stands beside the place, too: 塗装 before the 場 of 塗装場."""
    start, end = place
    at = -1
    for _ in range(sequence.count(term)):
        at = sequence.index(term, at + 1)
        before, behind = sequence[max(at - 1, 0) : at], sequence[at + 1 : at + 2]
        if any(folded.startswith(other, start - len(other)) for other in before if len(other) <= start):
            return True
        if any(folded.startswith(other, end) for other in behind):
            return True
    return False


def _same_script(one: str, other: str) -> bool:
    script = _script(one)
    return bool(script) and script == _script(other)


def _script(character: str) -> str:
    if "一" <= character <= "鿿" or character in "々〆":
        return "kanji"
    return "katakana" if "ァ" <= character <= "ヺ" or character == "ー" else ""


def _sought(question: AnalyzedQuestion) -> _Sought:
    words, form = words_of(question), question.form
    terms = frozenset((*form.terms, *question.analysis.identifiers, *(term for term, _ in form.synonyms)))
    spelled: dict[str, list[str]] = {}
    for term, spelling in form.spelled:
        spelled.setdefault(term, []).append(spelling)
    return _Sought(words=words, terms=terms, spelled=spelled)


def _hides(one: _LookedAt, sought: _Sought) -> bool:
    """Say whether a term stands in the text more often than words are found that show it."""
    found = one.found
    for term in {*one.standing}:
        number = one.standing.count(term)
        if number > len(found.get(term, ())) and number > sought.shown(term, found):  # else the word itself shows it
            return True
    return False


def _marked(one: _LookedAt, more: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return merged spans of the words that were found and of `more`, in order."""
    offsets = one.offsets
    spans: Iterable[tuple[int, int]] = chain(*one.found.values())
    if not isinstance(offsets, range):
        spans = (source_span(offsets, start, end) for start, end in spans)
    merged: list[tuple[int, int]] = []
    last = -1
    for start, end in sorted([*spans, *more]):
        if start > last:
            merged.append((start, end))
        elif end > last:
            merged[-1] = (merged[-1][0], end)
        last = max(end, last)
    return merged[:_MOST_SPANS]


def occurrences(folded: str, word: str) -> list[tuple[int, int]]:
    """Return where the word stands in the folded text, not as a part of a longer code or number (`f-17` in `f-170`).

    The marks of a long vowel that end a word in katakana belong to it: サーバ stands in サーバー with its ー.
    """
    places: list[tuple[int, int]] = []
    at, size = folded.find(word) if word else -1, len(word)
    while at >= 0:
        places.append((at, at + size))
        at = folded.find(word, at + size)
    if places and (word[0] in _CODE or word[-1] in _CODE):
        return [place for place in places if not _glued(folded, place[0]) and not _glued(folded, place[1])]
    if places and "ァ" <= word[-1] <= "ー":
        return [(start, _drawn_out(folded, end)) for start, end in places]
    return places


def _drawn_out(text: str, end: int) -> int:
    """Return the end behind the marks of a long vowel that follow, where no word goes on behind them."""
    behind = end
    while text[behind : behind + 1] == "ー":
        behind += 1
    return end if "ァ" <= text[behind : behind + 1] <= "ヺ" else behind


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
