"""Our tokens and keys through Weaviate's tokenizers and back, exactly.

`whitespace` splits at Unicode white space and changes nothing else; `field` only trims white space at
both ends. What they would split, trim or lose is written as its bytes in hexadecimal, on both sides.
"""

import re
from collections.abc import Sequence

ESCAPE = "\x02"
BIGRAM = "\x03"
"""Stands before each bigram, so that a term and a bigram of the same characters are two tokens."""

# Control characters, all white space, surrogates (gRPC carries UTF-8), and no character at all.
_UNSAFE_TOKEN = re.compile(r"[\x00-\x20\x7f\s\ud800-\udfff]|\A\Z")
_BETWEEN = "\x00"
_UNSAFE_WITHIN = re.compile(r"[\x01-\x20\x7f\s\ud800-\udfff]")
_UNSAFE_KEY = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]|\A\s|\s\Z|\A\Z")


def _hexadecimal(text: str) -> str:
    return ESCAPE + text.encode("utf-8", "surrogatepass").hex()


def _read(text: str) -> str:
    if text.startswith(ESCAPE):
        return bytes.fromhex(text[1:]).decode("utf-8", "surrogatepass")
    return text


def token(text: str, mark: str = "") -> str:
    """Return the form in which a token is indexed and asked for."""
    return mark + (_hexadecimal(text) if _UNSAFE_TOKEN.search(text) else text)


def column(tokens: Sequence[str], mark: str = "") -> str:
    """Return the text of a `whitespace` property that holds exactly these tokens."""
    # A chunk has hundreds of which hardly one is unsafe: one look at all of them costs a tenth of one at each.
    joined = _BETWEEN.join(tokens)
    if joined and "" not in tokens and joined.count(_BETWEEN) == len(tokens) - 1 and not _UNSAFE_WITHIN.search(joined):
        return mark + joined.replace(_BETWEEN, " " + mark)
    return " ".join(token(text, mark) for text in tokens)


def tokens(text: str, mark: str = "") -> tuple[str, ...]:
    """Read a column back."""
    if not text:
        return ()
    if ESCAPE not in text:
        return tuple((text.replace(mark, "") if mark else text).split(" "))
    return tuple(_read(part.removeprefix(mark)) for part in text.split(" "))


def key(text: str) -> str:
    """Return the form in which a `field` property keeps a text; escaped ones sort before all others."""
    return _hexadecimal(text) if _UNSAFE_KEY.search(text) else text


def read_key(text: str) -> str:
    """Read a key back."""
    return _read(text)
