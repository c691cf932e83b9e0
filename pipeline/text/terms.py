"""Index terms: identifiers whole, values in one form, content words normalized, and character bigrams."""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from operator import add, itemgetter
from typing import TYPE_CHECKING

import msgspec

from pipeline.text.identifiers import Identifier, Identifiers, as_mentions
from pipeline.text.morphemes import Entry, Morphemes
from pipeline.text.normalize import fold, matching_form, source_span
from pipeline.text.spellings import LONGEST, SEPARATORS, SPELLINGS_VERSION, Whole
from pipeline.text.units import Units, product_units
from pipeline.text.values import Value, Values, as_date
from schemas.document import Analysis, Token

if TYPE_CHECKING:
    from sudachipy import Morpheme, MorphemeList

TERMS_VERSION = "5" + SPELLINGS_VERSION
"""Part of every analyzer version: raise it when the same text gets other terms."""

SUDACHI_MAX_CHARACTERS = 8_000
"""At most 32,000 bytes, far below Sudachi's 49,149; folded text does not grow any more."""

_NUMBER = re.compile(r"[0-9]+(?:[.,][0-9]+)*")
_CUT = re.compile(r"[\s。、!?]")
_RUN = re.compile(r"[^\W_]{2,}")
_OF_A_TIME = re.compile(r"(?<=[0-9]-[0-9]{2})t[0-9]{2}$")
_MAY_BE_A_DATE = re.compile(r"[12][0-9]{3}[./-]|[mtshr]\.?[0-9]{1,2}[./-]")


Placed = tuple[int, int, str, str]
"""Start, end, term, kind."""
_START = itemgetter(0)


class Marks(msgspec.Struct, frozen=True):
    """What is taken out of a folded text before its words are looked at; both in reading order."""

    identifiers: list[Identifier]
    values: list[Value]


class TermAnalyzer:
    """Terms of documents and of questions: one function for both. A pure function of text and version.

    May be shared between threads.
    """

    def __init__(
        self,
        identifiers: Identifiers,
        units: Units | None = None,
        morphemes: Morphemes | None = None,
        parts: dict[str, tuple[str, ...]] | None = None,
    ) -> None:
        """Take patterns, units, morphemes, and the terms inside of words of a user dictionary, by the word's term."""
        self._identifiers = identifiers
        self._values = Values(units or product_units())
        self.morphemes = morphemes or Morphemes()
        self._parts = parts or {}

    def analyze(self, text: str) -> Analysis:
        """Return terms, bigrams and identifiers; `mentions` holds the identifiers. Takes any text."""
        folded, offsets = fold(text)
        marks = self.marks(folded)
        placed = [Identifier(*source_span(offsets, i.start, i.end), i.key, i.name, i.type) for i in marks.identifiers]
        if marks.identifiers or marks.values:
            terms = [term for _, _, term, _ in self.placed(folded, marks)]
        else:
            terms = [term for _, piece in pieces(folded, SUDACHI_MAX_CHARACTERS) for term in self._plain(piece)]
        return Analysis(
            terms=tuple(terms),
            bigrams=bigrams(matching_form(folded)),
            identifiers=tuple(i.key for i in marks.identifiers),
            mentions=as_mentions(placed, text),
        )

    def tokens_with_offsets(self, text: str) -> list[Token]:
        """Return the terms of `analyze` in the same order, with their spans in `text`."""
        folded, offsets = fold(text)
        found: list[Token] = []
        for start, end, term, kind in self.placed(folded, self.marks(folded)):
            # サーバー- is one word for Sudachi
            size = len(folded[start:end].rstrip("-")) if kind == "word" else 0
            found.append(Token(*source_span(offsets, start, start + size if size else end), term, kind))
        return found

    def marks(self, folded: str) -> Marks:
        """Return identifiers and values of a folded text, none overlapping: the longer one, and else the identifier."""
        identifiers, values = self._identifiers.find_folded(folded), self._values.find(folded)
        if not values and not identifiers:
            return Marks([], [])
        dates = [v for i in identifiers if (v := _as_date(i))]
        taken = {d.start for d in dates}
        eras = [v for v in values if v.kind == "date"]  # 31.4.3 has the shape of a version, 平31.4.3 is a day
        codes = [i for i in identifiers if i.start not in taken and not any(_within(i, v) for v in eras)]
        things = [v for v in values if v.names_a_thing and not _inside(v, codes)]
        codes = [i for i in codes if not any(v.start < i.end and i.start < v.end for v in things)]
        codes += [Identifier(v.start, v.end, v.key, v.kind) for v in things]
        rest = [v for v in values if not v.names_a_thing and v.start not in taken]
        rest = [v for v in rest if not any(v.start < i.end and i.start < v.end for i in codes)]
        return Marks(sorted(codes, key=lambda i: i.start), sorted([*rest, *dates], key=lambda v: v.start))

    def placed(self, folded: str, marks: Marks) -> list[Placed]:
        """Return all terms with offsets in the folded text, in reading order."""
        rest = folded
        if marks.identifiers:  # identifiers become blanks of the same length, so that Sudachi's offsets stand
            rest = blank_out(folded, marks.identifiers)
        found: list[Placed] = [(i.start, i.end, i.key, "identifier") for i in marks.identifiers]
        for identifier in marks.identifiers:
            if identifier.name == "document_number":
                found += self._inside_of(identifier, folded)
        looked_at = [
            (start, piece, self.morphemes.tokenize(piece)) for start, piece in pieces(rest, SUDACHI_MAX_CHARACTERS)
        ]
        for start, piece, morphemes in looked_at:
            self._words(start, piece, morphemes, found)
        numbers = {(start, term) for start, _, term, kind in found if kind == "number"} if marks.values else ()
        for value in marks.values:
            # 十分 is a word, 二台 is not: the edges of words tell, and that it begins with a numeral.
            if not value.in_kanji or any(self._stands_alone(value, at, morphemes) for at, _, morphemes in looked_at):
                forms = (term for term in (value.key, *value.wider) if (value.start, term) not in numbers)
                found += [(value.start, value.end, term, "value") for term in forms]
        found.sort(key=_START)
        return found

    def _inside_of(self, number: Identifier, folded: str) -> Iterator[Placed]:
        """Yield what else 湊川市告示第12号 is found by: 告示第12号, 12号, and the words of its office."""
        office, _, count = number.key.rpartition("第")
        words: list[Placed] = []
        written = folded[number.start : number.start + len(office)]
        self._words(number.start, written, self.morphemes.tokenize(written), words)
        for start, end, term, _ in words:
            yield start, end, term, "inside"
            shorter = folded[start : number.start + len(office)]
            if start > number.start and len(shorter) > 1:
                yield start, number.end, f"{shorter}第{count}", "inside"
        yield number.start + len(office), number.end, count, "inside"

    def _plain(self, piece: str) -> Iterator[str]:
        """Yield the terms of a text without marks: most texts, so the quick way."""
        morphemes = self.morphemes.tokenize(piece)
        entries = self._entries(morphemes)
        if self._wholes(entries, morphemes):
            found: list[Placed] = []
            self._words(0, piece, morphemes, found)
            found.sort(key=_START)
            yield from [term for _, _, term, _ in found]
            return
        parts = self._parts
        before: Entry | None = None
        number_end = -1
        for at, entry in enumerate(entries):
            if not entry.content:
                before = None
                continue
            term = entry.term
            if entry.numeral:
                morpheme = morphemes[at]
                start, end = morpheme.begin(), morpheme.end()
                if start < number_end:
                    continue
                if number := _number(piece, start, end):
                    number_end, term = number.end(), number.group().replace(",", "")
            if term:
                yield term
                if term in parts:
                    yield from parts[term]
            if before is not None and before.joins and entry.joined:
                yield before.joins + entry.joined
            before = entry

    def _entries(self, morphemes: "Iterable[Morpheme]") -> list[Entry]:
        known, entry_of = self.morphemes.entries, self.morphemes.entry
        return [known.get(morpheme.word_id()) or entry_of(morpheme) for morpheme in morphemes]

    def _wholes(self, entries: list[Entry], morphemes: "MorphemeList") -> list[Whole]:
        """Return the words that are written in several parts; none overlaps another."""
        found: list[Whole] = []
        for at in [n for n, one in enumerate(entries[:-1]) if one.opens and entries[n + 1].term in one.opens]:
            if not found or found[-1].end <= at:
                following = range(at, min(at + LONGEST, len(entries)))
                whole = self.morphemes.spellings.whole(
                    ((entries[n].term, morphemes[n].surface()) for n in following), at
                )
                found += [whole] if whole else []
        return found

    def _stands_alone(self, value: Value, shift: int, morphemes: "MorphemeList") -> bool:
        """Say whether a value begins with a numeral and ends with a word; `shift` is where the morphemes begin."""
        number = range(len(morphemes))
        start, end = (
            bisect_left(number, at - shift, key=lambda n: morphemes[n].begin()) for at in (value.start, value.end)
        )
        if start == len(morphemes) or morphemes[start].begin() + shift != value.start:
            return False
        ends = morphemes[end - 1].end() + shift == value.end
        return ends and self.morphemes.entry(morphemes[start]).counts

    def _words(self, shift: int, piece: str, morphemes: "MorphemeList", found: list[Placed]) -> None:
        """Add the same with their places."""
        parts = self._parts
        each = list(morphemes)  # to go through the list twice would make each of them twice
        entries = self._entries(each)
        wholes = self._wholes(entries, morphemes)
        for whole in wholes:
            found += _placed_whole(whole, morphemes, shift)
        inside = {at for whole in wholes for at in range(whole.start, whole.end)}
        before: tuple[Entry, int] | None = None
        number_end = -1
        for at, (morpheme, entry) in enumerate(zip(each, entries, strict=True)):
            if not entry.content or at in inside:
                before = None
                continue
            start, end = morpheme.begin(), morpheme.end()
            term, kind = entry.term, "word"
            if entry.numeral:
                if start < number_end:
                    continue
                if number := _number(piece, start, end):
                    number_end = end = number.end()
                    term, kind = number.group().replace(",", ""), "number"
            if term:
                found.append((shift + start, shift + end, term, kind))
                if term in parts:
                    found += [(shift + start, shift + end, part, "part") for part in parts[term]]
            if before is not None and before[0].joins and entry.joined:
                found.append((shift + before[1], shift + end, before[0].joins + entry.joined, "compound"))
            before = entry, start


def _placed_whole(whole: Whole, morphemes: "MorphemeList", shift: int) -> list[Placed]:
    """Return the terms of a word in parts with their places; parts that count are words, and the whole a compound."""
    spelled = [morphemes[n] for n in range(whole.start, whole.end)]
    start, end = shift + spelled[0].begin(), shift + spelled[-1].end()
    if not whole.parts:
        return [(start, end, whole.term, "word")]
    inside = [m for m in spelled if m.surface() not in SEPARATORS]
    words = [(shift + m.begin(), shift + m.end(), term, "word") for m, term in zip(inside, whole.parts, strict=True)]
    return [*words, (start, end, whole.term, "compound")]


def _number(piece: str, start: int, end: int) -> re.Match[str] | None:
    """Return a whole number: Sudachi gives digit by digit."""
    number = _NUMBER.match(piece, start)
    return number if number and number.end() >= end else None


def _as_date(identifier: Identifier) -> Value | None:
    """Return the date that an identifier is: 2025-07-08 has the shape of a document number."""
    key = _OF_A_TIME.sub("", identifier.key)
    value = as_date(key) if _MAY_BE_A_DATE.match(key) else None
    return value and Value(identifier.start, identifier.end, value.key, value.kind, value.wider)


def _within(identifier: Identifier, date: Value) -> bool:
    """Say whether it is only a part of a date: 31.4.3 of 平31.4.3, s58 of S58年."""
    return date.start < identifier.start < date.end or (date.start == identifier.start and identifier.end < date.end)


def _inside(value: Value, identifiers: Sequence[Identifier]) -> bool:
    return any((i.start <= value.start and value.end < i.end) or i.start < value.start < i.end for i in identifiers)


def bigrams(folded: str) -> tuple[str, ...]:
    """Return the character bigrams inside runs of letters and digits, in reading order, with repeats."""
    return tuple(chain.from_iterable(map(add, run, run[1:]) for run in _RUN.findall(folded)))


def blank_out(folded: str, found: Sequence[Identifier]) -> str:
    """Put spaces in place of the identifiers; the length stays."""
    parts: list[str] = []
    done = 0
    for identifier in found:
        parts += [folded[done : identifier.start], " " * (identifier.end - identifier.start)]
        done = identifier.end
    return "".join([*parts, folded[done:]])


def pieces(text: str, longest: int) -> Iterator[tuple[int, str]]:
    """Cut a text into pieces of at most `longest` characters, after a sentence or a space where there is one."""
    start = 0
    while len(text) - start > longest:
        cut = start + longest
        for match in _CUT.finditer(text, cut - longest // 8, cut):
            cut = match.end()
        yield start, text[start:cut]
        start = cut
    if start < len(text):
        yield start, text[start:]
