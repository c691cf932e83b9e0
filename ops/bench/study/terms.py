"""Ways to turn text into index terms: Sudachi's units and forms, and character bigrams.

The product has one of them (mode A, normalized, without function words; `pipeline.text.terms`) with much added:
identifiers, values, variants, synonyms. Here each stands bare, so that the table shows what it alone does.
"""

import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Literal

from pipeline.errors import InvalidConfiguration
from pipeline.text.morphemes import open_dictionary
from pipeline.text.normalize import fold, matching_form
from pipeline.text.terms import SUDACHI_MAX_CHARACTERS, bigrams, pieces

if TYPE_CHECKING:
    from sudachipy import Tokenizer

Terms = Callable[[str], list[str]]
Form = Literal["surface", "normalized"]

_FUNCTION_WORDS = frozenset(("助詞", "助動詞", "補助記号", "記号", "空白", "接続詞", "感動詞", "連体詞"))
_opened = threading.local()


def analysis(name: str, dictionary: bytes = b"") -> Terms:
    """Return the analysis called `name`: parts joined by `+`, all of whose terms go into one index.

    `dictionary` is a compiled user dictionary of Sudachi, for all of its parts.
    `A`, `B`, `C`: Sudachi in that mode, normalized, function words out; `A-surface`: every token as it is written;
    `bigrams`. Raises InvalidConfiguration.
    """
    parts = [_part(part.strip(), dictionary) for part in name.split("+")]
    if len(parts) == 1:
        return parts[0]
    return lambda text: [f"{number}:{term}" for number, part in enumerate(parts) for term in part(text)]


def _part(name: str, dictionary: bytes) -> Terms:
    mode, _, form = name.partition("-")
    if name == "bigrams":
        return lambda text: list(bigrams(matching_form(fold(text)[0])))
    if mode not in ("A", "B", "C") or form not in ("", "surface"):
        raise InvalidConfiguration(f"{name!r} is no analysis: A, B, C, A-surface, B-surface, C-surface, bigrams")
    return partial(_words, mode=mode, surface=bool(form), dictionary=dictionary)


def _words(text: str, *, mode: str, surface: bool, dictionary: bytes) -> list[str]:
    return list(_iterate(text, _tokenizer(mode, dictionary), surface=surface))


def _iterate(text: str, tokenizer: "Tokenizer", *, surface: bool) -> Iterator[str]:
    for _, piece in pieces(fold(text)[0], SUDACHI_MAX_CHARACTERS):
        for morpheme in tokenizer.tokenize(piece):
            if surface:
                if written := morpheme.surface().strip():
                    yield written
            elif morpheme.part_of_speech()[0] not in _FUNCTION_WORDS:
                yield morpheme.normalized_form()


def _tokenizer(mode: str, dictionary: bytes) -> "Tokenizer":
    """One for each thread, mode and dictionary: they may not be shared."""
    known: dict[tuple[str, bytes], Tokenizer] = _opened.__dict__.setdefault("tokenizers", {})
    if (mode, dictionary) not in known:
        known[mode, dictionary] = open_dictionary(dictionary).create(mode)
    return known[mode, dictionary]
