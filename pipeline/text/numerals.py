"""Numbers as Japanese writes them: 1,200, 千二百, 二〇二五, 1億2000万, 3千."""

import re
from decimal import Decimal, InvalidOperation

DIGITS = "〇一二三四五六七八九"
_OLD = str.maketrans({"零": "〇", "壱": "一", "弐": "二", "参": "三", "拾": "十", "廿": "十"})
_SMALL = {"千": 1000, "百": 100, "十": 10}
_LARGE = {"兆": 10**12, "億": 10**8, "万": 10**4}
_PLAIN = re.compile(r"(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?")
LONGEST = 24
"""Characters: longer ones are no numbers of anything."""


def parse_number(text: str) -> Decimal | None:
    """Read a folded number, or None."""
    if not text or len(text) > LONGEST:
        return None
    rest, total = text.translate(_OLD), Decimal(0)
    for mark, scale in _LARGE.items():
        if mark in rest:
            head, _, rest = rest.partition(mark)
            count = _below_ten_thousand(head)
            if count is None:
                return None
            total += count * scale
    if not rest:
        return total
    last = _below_ten_thousand(rest)
    return None if last is None else total + last


def number_text(number: Decimal) -> str:
    """Write a number without exponent and needless zeros: 1200, 3.5."""
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _below_ten_thousand(text: str) -> Decimal | None:
    if _PLAIN.fullmatch(text):
        try:
            return Decimal(text.replace(",", ""))
        except InvalidOperation:
            return None
    total, rest = Decimal(0), text
    for mark, scale in _SMALL.items():
        if mark in rest:
            head, _, rest = rest.partition(mark)
            count = Decimal(1) if not head else _digits(head)
            if count is None:
                return None
            total += count * scale
    last = _digits(rest) if rest else Decimal(0)
    return None if last is None or not text else total + last


def _digits(text: str) -> Decimal | None:
    """Read 25, 3.5 or 二五, digit by digit."""
    plain = "".join(str(DIGITS.index(c)) if c in DIGITS else c for c in text)
    return Decimal(plain) if _PLAIN.fullmatch(plain) else None
