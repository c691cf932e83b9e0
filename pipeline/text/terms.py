"""Index terms: identifiers whole, numbers whole, content words normalized, and character bigrams."""

import re
import threading
from collections.abc import Iterator
from functools import lru_cache
from operator import add
from typing import TYPE_CHECKING, Literal

import msgspec

from pipeline.text.identifiers import Identifier, Identifiers, as_mentions
from pipeline.text.normalize import drop_long_vowels, fold, name_form, source_span
from pipeline.text.variants import KANJI_VARIANTS
from schemas.document import Analysis

if TYPE_CHECKING:
    from sudachipy import Dictionary, MorphemeList, Tokenizer

TERMS_VERSION = "1"
"""Part of every analyzer version: raise it when the same text gets other terms."""

SUDACHI_MAX_CHARACTERS = 8_000
"""At most 32,000 bytes, far below Sudachi's 49,149; folded text does not grow any more."""

_KIND = Literal["identifier", "number", "word"]
_NUMBER = re.compile(r"[0-9]+(?:[.,][0-9]+)*")
_CUT = re.compile(r"[\s。、!?]")
_NO_TERM = re.compile(r"[\W_]+")
_KANJI = str.maketrans(KANJI_VARIANTS)
_FUNCTION_WORDS = {"助詞", "助動詞", "補助記号", "空白", "接続詞", "連体詞", "代名詞"}
_FUNCTION_SUBTYPES = {("記号", "一般"), ("名詞", "助動詞語幹"), ("形状詞", "助動詞語幹")}
_LIGHT_WORDS = {"為る", "居る", "有る", "成る", "言う", "御座る", "御", "事"}
"""Normalized forms that carry no meaning of their own though their part of speech is content."""


class Token(msgspec.Struct, frozen=True, array_like=True):
    """A term with its span in the text that was given."""

    start: int
    end: int
    term: str
    kind: _KIND


class TermAnalyzer:
    """Terms of documents and of questions: one function for both. A pure function of text and version.

    May be shared between threads: each gets its own tokenizer. The dictionary is opened at first use
    (about 50 ms) and is mapped, not read.
    """

    def __init__(self, identifiers: Identifiers) -> None:
        self._identifiers = identifiers
        self._own = threading.local()
        self._lock = threading.Lock()
        self._dictionary: Dictionary | None = None
        self._content: dict[int, bool] = {}

    def analyze(self, text: str) -> Analysis:
        """Return terms, bigrams and identifiers; `mentions` holds the identifiers. Takes any text."""
        folded, offsets = fold(text)
        found = self._identifiers.find_folded(folded)
        placed = [Identifier(*source_span(offsets, i.start, i.end), i.key, i.name, i.type) for i in found]
        return Analysis(
            terms=tuple(t.term for t in self._tokens(folded, found)),
            bigrams=bigrams(name_form(folded)[0]),
            identifiers=tuple(i.key for i in found),
            mentions=as_mentions(placed, text),
        )

    def tokens_with_offsets(self, text: str) -> list[Token]:
        """Return the terms of `analyze` in the same order, with their spans in `text`."""
        folded, offsets = fold(text)
        tokens = self._tokens(folded, self._identifiers.find_folded(folded))
        return [Token(*source_span(offsets, t.start, t.end), t.term, t.kind) for t in tokens]

    def _tokens(self, folded: str, found: list[Identifier]) -> list[Token]:
        """Tokens with offsets in the folded text."""
        rest = folded
        if found:  # identifiers become blanks of the same length, so that Sudachi's offsets stand
            rest = blank_out(folded, found)
        tokens = [Token(i.start, i.end, i.key, "identifier") for i in found]
        for start, piece in pieces(rest, SUDACHI_MAX_CHARACTERS):
            tokens += self._words(start, piece)
        if found:
            tokens.sort(key=lambda t: t.start)
        return tokens

    def _words(self, shift: int, piece: str) -> list[Token]:
        words: list[Token] = []
        number_end = -1
        known = self._content
        for morpheme in self._tokenize(piece):
            pos = morpheme.part_of_speech_id()
            if not (known[pos] if pos in known else self._is_content(pos)):
                continue
            start, end = morpheme.begin(), morpheme.end()
            if start < number_end:
                continue
            surface = piece[start:end]
            number = _NUMBER.match(piece, start) if surface[0] in "0123456789" else None
            if number and number.end() >= end:  # Sudachi gives digit by digit
                number_end = number.end()
                words.append(Token(shift + start, shift + number_end, number.group().replace(",", ""), "number"))
                continue
            term = plain_term(surface if surface.isascii() else morpheme.normalized_form())
            if term:
                words.append(Token(shift + start, shift + end, term, "word"))
        return words

    def _tokenize(self, piece: str) -> "MorphemeList":
        tokenizer: Tokenizer | None = getattr(self._own, "tokenizer", None)
        if tokenizer is None:
            tokenizer = self._own.tokenizer = self._open()
        return tokenizer.tokenize(piece)

    def _open(self) -> "Tokenizer":
        from sudachipy import Dictionary

        with self._lock:
            if self._dictionary is None:
                self._dictionary = Dictionary(dict="core")
            return self._dictionary.create("A", fields={"surface", "pos", "normalized_form"})

    def _is_content(self, pos: int) -> bool:
        assert self._dictionary is not None
        levels = self._dictionary.pos_of(pos) or ("",) * 6
        content = levels[0] not in _FUNCTION_WORDS and levels[:2] not in _FUNCTION_SUBTYPES
        self._content[pos] = content
        return content


@lru_cache(maxsize=65_536)
def plain_term(form: str) -> str:
    """Return a normalized form as an index term: no symbols or spaces, one shape; "" for light words."""
    if form in _LIGHT_WORDS:
        return ""
    return drop_long_vowels(_NO_TERM.sub("", form.casefold().translate(_KANJI)))


def bigrams(folded: str) -> tuple[str, ...]:
    """Return the character bigrams inside runs of letters and digits, in reading order, with repeats."""
    return tuple(filter(str.isalnum, map(add, folded, folded[1:])))


def blank_out(folded: str, found: list[Identifier]) -> str:
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
