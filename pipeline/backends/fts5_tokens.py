"""Our tokens through FTS5 and back, exactly, at the speed of its built-in tokenizer."""

import re
from collections.abc import Iterable, Sequence

TOKENIZER = "unicode61 remove_diacritics 0 categories 'L* M* N* P* S* Cc Cf Cn Co Cs Zl Zp'"
"""Splits at U+0020 only (and at what `_escaped` takes out), keeps dakuten and every symbol, but folds case."""

CODE_COLUMNS = ("title", "identifiers")
"""Where an identifier is looked for."""

_ESCAPE = "\x02"
_UNSAFE = re.compile("[\x00\x02\\s\ufffe\uffff]")


def _escaped(token: str) -> str:
    """Return the token, or its bytes in hexadecimal where unicode61 would fold or split it."""
    if _UNSAFE.search(token) or token.casefold() != token:
        return _ESCAPE + token.encode("utf-8", "surrogatepass").hex()
    return token


def column_text(tokens: Iterable[str]) -> str:
    """Return the text of an FTS5 column that holds exactly these tokens; empty ones are left out."""
    kept = [token for token in tokens if token]
    text = " ".join(kept)
    one_space_each = text.count(" ") == max(len(kept) - 1, 0)
    if one_space_each and text.casefold() == text and not _UNSAFE.search(text.replace(" ", "")):
        return text
    return " ".join(map(_escaped, kept))


def indexed_form(token: str) -> str:
    """Return the token as FTS5's vocabulary lists it."""
    return _escaped(token)


def _string(token: str) -> str:
    return '"' + _escaped(token).replace('"', '""') + '"'


def any_of(columns: Sequence[str], tokens: Sequence[str]) -> str:
    """Return a MATCH expression: one of the tokens in one of the columns. Tokens never act as syntax."""
    return f"{{{' '.join(columns)}}} : (" + " OR ".join(_string(token) for token in tokens) + ")"


def all_of(column: str, tokens: Sequence[str]) -> str:
    """Return a MATCH expression: every token in this column."""
    return f"{column} : (" + " AND ".join(_string(token) for token in tokens) + ")"
