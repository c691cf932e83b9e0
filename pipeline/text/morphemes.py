"""Morphemes of Sudachi, and what each gives to an index: looked up once per word of the dictionary."""

import re
import tempfile
import threading
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pipeline.text.normalize import drop_long_vowels
from pipeline.text.spellings import SEPARATOR, SEPARATORS, Spellings, spellings
from pipeline.text.variants import KANJI_VARIANTS, katakana_form, usual_words

if TYPE_CHECKING:
    from sudachipy import Dictionary, Morpheme, MorphemeList, Tokenizer

_NO_TERM = re.compile(r"[\W_]+")
_KANJI = str.maketrans(KANJI_VARIANTS)
_IS_KANJI = re.compile("[一-鿿々]")
_OF_PLACE = re.compile("(?<=[一-鿿])ケ(?=[一-鿿])")
"""関ケ原 is 関が原; `fold` makes ケ of ヶ and ヵ."""
_REPEATED = re.compile("([一-鿿])々")
_REMEMBERED = 50_000
_JOINED = 0x0FFF_FFFF
"""The number of all words that Sudachi joins from parts, most names in katakana; it does not call them unknown."""
_HIRAGANA = re.compile("[ぁ-ゖー]{2,}")
_AS_KATAKANA = {code: code + 0x60 for code in range(ord("ぁ"), ord("ゖ") + 1)}
_FUNCTION_WORDS = {"助詞", "助動詞", "補助記号", "空白", "接続詞", "連体詞", "代名詞"}
_FUNCTION_SUBTYPES = {("記号", "一般"), ("名詞", "助動詞語幹"), ("形状詞", "助動詞語幹")}
_LIGHT_WORDS = {"為る", "居る", "有る", "成る", "言う", "御座る", "御", "事", "さん", "ちゃん"}
"""Normalized forms that carry no meaning of their own though their part of speech is content."""
_STEMS = dict(zip("うくぐすつぬぶむる", "いきぎしちにびみり", strict=True))


class Entry(NamedTuple):
    """What a morpheme gives."""

    content: bool
    """False for particles and the like."""
    term: str
    """Its index term; empty for light words and symbols."""
    numeral: bool
    """True when it is of digits: then others may go on behind it."""
    joins: str
    """The stem of a verb that another verb may follow: 立ち of 立ち入る; else empty."""
    joined: str
    """The stem of a verb as the second half: 入り."""
    counts: bool = False
    """True for numerals, in kanji too."""
    opens: frozenset[str] | None = None
    """The terms behind it with which it may spell one word, where there are such: 込み behind 書."""


class Morphemes:
    """Sudachi's tokenizer in mode A. May be shared between threads: each gets its own tokenizer.

    The dictionary is opened at first use (about 50 ms) and is mapped, not read.
    """

    def __init__(self, user_dictionary: bytes = b"", table: Spellings | None = None) -> None:
        """Take a compiled user dictionary, if there is one, and the other ways of writing words: the product's own."""
        self.spellings = spellings() if table is None else table
        self._user_dictionary = user_dictionary
        self._own = threading.local()
        self._lock = threading.Lock()
        self._dictionary: Dictionary | None = None
        self.entries: dict[int, Entry] = {}
        """Known words by their number."""
        self._unknown: dict[tuple[str, int], Entry] = {}

    def tokenize(self, piece: str) -> "MorphemeList":
        """Return the morphemes of a folded text of at most SUDACHI_MAX_CHARACTERS.

        Remembers those of the last text: a question's terms and its form look at the same one.
        """
        own = self._own
        if getattr(own, "piece", None) != piece:
            if not hasattr(own, "tokenizer"):
                own.tokenizer = self._open()
            own.morphemes, own.piece = own.tokenizer.tokenize(piece), piece
        morphemes: MorphemeList = own.morphemes
        return morphemes

    def entry(self, morpheme: "Morpheme") -> Entry:
        """Return what a morpheme gives, and remember it."""
        if not morpheme.is_oov() and morpheme.word_id() != _JOINED:
            entry = self.entries[morpheme.word_id()] = self._entry_of(morpheme)
            return entry
        key = morpheme.surface(), morpheme.part_of_speech_id()
        found = self._unknown.get(key)
        if found is None:
            if len(self._unknown) > _REMEMBERED:
                self._unknown.clear()
            found = self._unknown[key] = self._entry_of(morpheme)
        return found

    def _entry_of(self, morpheme: "Morpheme") -> Entry:
        surface, table = morpheme.surface(), self.spellings
        if surface in SEPARATORS:
            return Entry(False, SEPARATOR, False, "", "")
        entry = _entry(surface, morpheme.normalized_form(), tuple(morpheme.part_of_speech()))
        term = table.words.get(entry.term, entry.term)
        return entry._replace(term=term, opens=table.opening.get(term))

    def _open(self) -> "Tokenizer":
        with self._lock:
            if self._dictionary is None:
                self._dictionary = open_dictionary(self._user_dictionary)
            return self._dictionary.create("A", fields={"surface", "pos", "normalized_form"})


def open_dictionary(user_dictionary: bytes = b"") -> "Dictionary":
    """Open Sudachi's core dictionary, with a compiled user dictionary where one is given."""
    from sudachipy import Config, Dictionary

    if not user_dictionary:
        return Dictionary(dict="core")
    with tempfile.TemporaryDirectory() as folder:  # Sudachi reads a path; a killed worker leaves nothing behind
        path = Path(folder) / "user.dic"
        path.write_bytes(user_dictionary)
        return Dictionary(config=Config(system="core", user=[str(path)]))


def _entry(surface: str, normalized: str, levels: tuple[str, ...]) -> Entry:
    content = levels[0] not in _FUNCTION_WORDS and levels[:2] not in _FUNCTION_SUBTYPES
    if not content:
        return Entry(False, "", False, "", "")
    counts = levels[1] == "数詞"
    if surface[:1].isascii():
        numeral = surface[:1] in "0123456789"
        return Entry(True, plain_term(surface if surface.isascii() else normalized), numeral, "", "", counts)
    stem = _stem(normalized, levels[4]) if levels[0] == "動詞" and _IS_KANJI.match(normalized) else ""
    if levels[0] == "名詞" and _HIRAGANA.fullmatch(normalized):  # ごみ and ゴミ
        normalized = normalized.translate(_AS_KATAKANA)
    if stem and len(_IS_KANJI.findall(normalized)) > 1:  # 申し込む and 申し込み are one
        return Entry(True, plain_term(stem), False, "", "")
    joins = stem if levels[5] == "連用形-一般" else ""
    return Entry(True, plain_term(normalized), False, joins, stem, counts)


def _stem(verb: str, conjugation: str) -> str:
    """Return the form of a verb that is a noun, too: 申し込み of 申し込む, 受け of 受ける, 見 of 見る.

    `conjugation` is that of the word as written, Sudachi's name of it (上一段-マ行).
    """
    kind, _, row = conjugation.partition("-")
    if kind.endswith("一段") and row != "ラ行" and verb.endswith("る"):  # 走れる (ラ行) is a form of 走る
        return verb[:-1]
    if (
        kind != "五段"
        and len(verb) > 2
        and verb.endswith("る")
        and verb[-2] in "いきぎしちにびみりえけげせてねべめれじぜでひへ"
    ):
        return verb[:-1]
    return verb[:-1] + _STEMS[verb[-1]] if verb[-1:] in _STEMS and len(verb) > 1 else ""


@lru_cache(maxsize=65_536)
def plain_term(form: str) -> str:
    """Return a normalized form as an index term: no symbols or spaces, one spelling; "" for light words."""
    if form in _LIGHT_WORDS:
        return ""
    term = drop_long_vowels(katakana_form(_NO_TERM.sub("", form.casefold().translate(_KANJI))))
    if "ケ" in term:
        term = _OF_PLACE.sub("が", term)
    if "々" in term:
        term = _REPEATED.sub(r"\1\1", term)
    return _usual_terms().get(term, term)


def usual_term(form: str) -> str:
    """Return the index term of a normalized form whose spelling may be another way of writing a word."""
    term = plain_term(form)
    return spellings().words.get(term, term)


@lru_cache(maxsize=1)
def _usual_terms() -> dict[str, str]:
    def plain(word: str) -> str:
        return drop_long_vowels(katakana_form(word))

    return {plain(word): plain(usual) for word, usual in usual_words().items()}
