"""Whether a document names itself where it begins: by a number in its head, not by one that it mentions or lists."""

import re
from collections.abc import Sequence

from pipeline.text.normalize import fold
from schemas.document import Token

BEGINNING = 200
"""Characters of a body in which a document says its own number, where it does."""

_DIGITS = re.compile("[0-9]+")
_YEAR = re.compile("[12][0-9]{3}")
_DATE = re.compile("[12][0-9]{3}(?:-[0-9]{2}){0,2}|[0-9]{2}-[0-9]{2}")
_BULLET = re.compile(r"\s*(?:[-*+・•●○■□◆◇–—]|\d{1,3}[.)、]|\(\d{1,3}\))\s*$")
_CLOSING = " )]』」】〉》"
_SENTENCE = re.compile("[、。,!?]")
_RUNS_INTO = re.compile(r"[ぁ-ゖ、,，][ \t]*(?:\r?\n)?[ \t]*$")
"""A sentence that is broken into lines, too."""
_GOES_ON = re.compile("[ぁ-ゖ、,]|[^\\W_].*。")
_LISTED = re.compile(r"[、,・;]|[\Wぁ-ゖ及並]*$")
_JOINS = re.compile(r"[\s((の]*")


def names_itself(beginning: str, tokens: Sequence[Token], identifier: str) -> Token | None:
    """Return where a text that begins a document names the document by this identifier, or None.

    That is the first identifier of the text, in a line that is no sentence and no item of a list: alone, behind a label
    (文書番号 AR-2025-004/報告日 …), in brackets behind a title, in a row of a table with its label, or before a title.
    `tokens` are the text's, as `Analyzer.places` gives them.
    """
    numbers = [token for token in tokens if token.kind == "identifier"]
    if not numbers or numbers[0].term != identifier:
        return None
    first = numbers[0]
    start = start_of(beginning, tokens, first)
    before, after = _around(beginning, start, first.end)
    if _SENTENCE.search(before) or _RUNS_INTO.search(beginning[:start]) or _GOES_ON.match(after.lstrip(_CLOSING)):
        return None
    if _BULLET.match(before) or (before.startswith("|") and not before.strip("| ")):
        return None
    alike = (one for one in numbers[1:] if _shape(one.term) == _shape(identifier))
    return None if any(_go_together(beginning, first, one) for one in alike) else first


def years_before(text: str, tokens: Sequence[Token], number: Token) -> frozenset[str]:
    """Return the year of a date right before a number: 令和6年条例第20号 is of 2024. Empty where there is none."""
    return frozenset(one.term for one in _dates_before(text, tokens, number) if _YEAR.fullmatch(one.term))


def start_of(text: str, tokens: Sequence[Token], number: Token) -> int:
    """Return where a number begins with the date that belongs to it."""
    return min((one.start for one in _dates_before(text, tokens, number)), default=number.start)


def _dates_before(text: str, tokens: Sequence[Token], number: Token) -> list[Token]:
    return [
        token
        for token in tokens
        if token.kind == "value" and token.end <= number.start and _JOINS.fullmatch(text, token.end, number.start)
        if _DATE.fullmatch(token.term)
    ]


def _around(text: str, start: int, end: int) -> tuple[str, str]:
    """Return what stands before and behind a span in its line, folded."""
    return fold(text[:start].rpartition("\n")[2])[0].lstrip(), fold(text[end:].partition("\n")[0])[0]


def _shape(text: str) -> str:
    return _DIGITS.sub("0", text)


def _go_together(text: str, first: Token, other: Token) -> bool:
    """Say whether two numbers of one shape are items of a list: in a line, or in lines that begin alike."""
    between = text[first.end : other.start]
    if "\n" not in between:
        return bool(_LISTED.match(fold(between)[0])) or "、" in between
    return _shape(_around(text, first.start, 0)[0]) == _shape(_around(text, other.start, 0)[0])
