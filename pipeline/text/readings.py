"""How names are read: by Sudachi's reading forms, for finding a name by its sound."""

import re
import threading
from typing import TYPE_CHECKING

from pipeline.text.morphemes import open_dictionary
from pipeline.text.normalize import fold
from pipeline.text.terms import SUDACHI_MAX_CHARACTERS
from pipeline.text.variants import katakana_form

if TYPE_CHECKING:
    from sudachipy import Dictionary, Tokenizer

_KANJI = re.compile("[一-鿿㐀-䶿々〆]")
_KANA = str.maketrans({code: code + 0x60 for code in range(ord("ぁ"), ord("ゖ") + 1)})
_SILENT = re.compile(r"[\W_ー]+")
_O_ROW = re.compile("(?<=[オコソトノホモヨロゴゾドボポョォ])[ウオ]")
_E_ROW = re.compile("(?<=[エケセテネヘメレゲゼデベペェ])イ")
_SAME_SOUND = str.maketrans("ヂヅヲ", "ジズオ")


class Readings:
    """Readings in katakana; mode C, so that a compound name is read as a whole. May be shared between threads."""

    def __init__(self, user_dictionary: bytes = b"") -> None:
        """Take a compiled user dictionary, if there is one; opens Sudachi at first use."""
        self._user_dictionary = user_dictionary
        self._own = threading.local()
        self._lock = threading.Lock()
        self._dictionary: Dictionary | None = None

    def of(self, text: str) -> str:
        """Return how a text is read; what is not kanji stays as it is written, in katakana. Takes any text."""
        folded = fold(text[:SUDACHI_MAX_CHARACTERS])[0][:SUDACHI_MAX_CHARACTERS]
        if not _KANJI.search(folded):
            return as_katakana(folded)
        parts = (
            morpheme.reading_form() if _KANJI.search(morpheme.surface()) else morpheme.surface()
            for morpheme in self._tokenizer().tokenize(folded)
        )
        return as_katakana("".join(parts))

    def _tokenizer(self) -> "Tokenizer":
        tokenizer: Tokenizer | None = getattr(self._own, "tokenizer", None)
        if tokenizer is None:
            with self._lock:
                if self._dictionary is None:
                    self._dictionary = open_dictionary(self._user_dictionary)
                tokenizer = self._own.tokenizer = self._dictionary.create("C", fields={"surface", "reading_form"})
        return tokenizer


def needs_reading(text: str) -> bool:
    """Say whether a text holds kanji: only then its reading is not what is written."""
    return bool(_KANJI.search(text))


def as_katakana(text: str) -> str:
    """Return the text with hiragana as katakana."""
    return text.translate(_KANA)


def sound(reading: str) -> str:
    """Return what readings that sound alike share: no symbols, no long vowels, one sign for each sound."""
    plain = _SILENT.sub("", katakana_form(as_katakana(reading)).translate(_SAME_SOUND))
    return _E_ROW.sub("", _O_ROW.sub("", plain))
