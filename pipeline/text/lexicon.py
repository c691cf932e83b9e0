"""The lexicon: everything that says how texts are analyzed, as data that travels to the workers."""

import hashlib
import tempfile
from importlib.resources import files
from pathlib import Path

import msgspec

from pipeline.text.dictionary import UserDictionary, UserWord
from pipeline.text.identifiers import IdentifierPattern, Identifiers
from pipeline.text.morphemes import Morphemes, usual_term
from pipeline.text.questions import QuestionAnalyzer
from pipeline.text.readings import Readings
from pipeline.text.synonyms import SynonymGroup
from pipeline.text.terms import TermAnalyzer
from pipeline.text.units import Unit, Units, product_units

_POS = {
    "person": "名詞,固有名詞,人名,一般,*,*",
    "place": "名詞,固有名詞,地名,一般,*,*",
    "word": "名詞,普通名詞,一般,*,*,*",
}
_PROPER_NOUN = "名詞,固有名詞,一般,*,*,*"
_CONNECTION = 4786
"""Sudachi's own advice for proper nouns."""
_COSTS = {2: 5000, 3: 2500}
"""By length: a short word must not tear longer ones apart, a long one wins over its parts."""


class Lexicon(msgspec.Struct, frozen=True):
    """Identifier patterns (the user's first), units, and the user's dictionary."""

    patterns: tuple[IdentifierPattern, ...]
    units: tuple[Unit, ...] = ()
    """Empty: the product's own."""
    dictionary: UserDictionary = UserDictionary()

    @property
    def identifiers(self) -> Identifiers:
        """Compile the patterns, and the codes of the dictionary before them."""
        return Identifiers([*self.dictionary.codes(), *self.patterns])

    @property
    def version(self) -> str:
        """Eight hex digits that change with patterns and units; the dictionary has a version of its own."""
        units = self.units or product_units().units
        return hashlib.sha256(msgspec.json.encode([self.patterns, units])).hexdigest()[:8]

    def analyzer(self) -> "LexicalAnalysis":
        """Compile everything. Opens Sudachi at once where there is a user dictionary, else at first use."""
        return LexicalAnalysis(self)


class LexicalAnalysis:
    """The one analysis of documents, questions, names and highlights, by one lexicon. May be shared between threads."""

    def __init__(self, lexicon: Lexicon) -> None:
        """See Lexicon.analyzer."""
        units = Units(lexicon.units) if lexicon.units else product_units()
        plain = TermAnalyzer(lexicon.identifiers, units)
        self.terms = plain
        groups: list[SynonymGroup] = []
        own = compiled(lexicon.dictionary) if lexicon.dictionary.words else b""
        self.readings = Readings(own)
        if lexicon.dictionary.words:
            headwords = lexicon.dictionary.headwords
            parts = {usual_term(w.word): found for w in headwords.values() if (found := _parts(w, plain))}
            self.terms = TermAnalyzer(lexicon.identifiers, units, Morphemes(own), parts)
            groups = _groups(lexicon.dictionary, self.terms)
        self.questions = QuestionAnalyzer(self.terms, groups)


def compiled(dictionary: UserDictionary) -> bytes:
    """Return a user dictionary as Sudachi loads it; takes about 0.1 s and 8 ms for each 100 words.

    A word without a reading is read as Sudachi reads it without the dictionary. Empty where all words are codes.
    """
    from sudachipy import sudachipy

    words = [word for word in dictionary.headwords.values() if word.kind != "code"]
    if not words:  # Sudachi dies of an empty one
        return b""
    plain = Readings()
    lines = "".join(_line(word, word.reading or plain.of(word.word)) for word in words)
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "user.dic"
        system = files("sudachidict_core").joinpath("resources/system.dic")
        sudachipy.build_user_dic(system=str(system), lex=[lines.encode()], output=str(target), description="shinsen")
        return target.read_bytes()


def _line(word: UserWord, reading: str) -> str:
    cost = _COSTS.get(len(word.word), 0)
    pos = _POS.get(word.kind, _PROPER_NOUN)
    text = _quoted(word.word)
    return f"{text},{_CONNECTION},{_CONNECTION},{cost},{text},{pos},{_quoted(reading)},{text},*,A,*,*,*\n"


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _parts(word: UserWord, plain: TermAnalyzer) -> tuple[str, ...]:
    """Return the terms inside of a compound of known words: 保全 and 推進 still find 保全推進課. A product is whole."""
    if word.kind in ("product", "code") or word.word.isascii():
        return ()
    tokens = plain.analyze(word.word).terms
    known = all(not morpheme.is_oov() for morpheme in plain.morphemes.tokenize(word.word))
    return tokens if known and len(tokens) > 1 else ()


def _groups(dictionary: UserDictionary, terms: TermAnalyzer) -> list[SynonymGroup]:
    def first(word: str) -> tuple[str, ...]:
        found = terms.analyze(word).terms
        return found[:1] if usual_term(word) in found[:1] else found

    groups = [
        SynonymGroup(tuple(first(word) for word in (one.word, *one.synonyms)), one.weight) for one in dictionary.words
    ]
    return [SynonymGroup(tuple(m for m in g.members if m), g.weight) for g in groups if len(g.members) > 1]
