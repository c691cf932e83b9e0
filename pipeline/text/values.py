"""Values in a text, each brought to one form: dates of any calendar, amounts with units, phone and document numbers.

令和7年7月8日, R7.7.8, 2025/07/08 and 二〇二五年七月八日 are `2025-07-08`; 1,200円, ¥1200 and 千二百円 are `1200円`.
A phone number and a document number name one thing: they are identifiers. The others are terms beside the words.
"""

import re
from collections.abc import Iterator
from datetime import date

import msgspec

from pipeline.text.calendar import ERAS
from pipeline.text.numerals import LONGEST, number_text, parse_number
from pipeline.text.units import Units

_REMEMBERED = 50_000
_K = "〇零一二三四五六七八九十"
_N = f"[0-9{_K}]"
_D = f"{_K}壱弐参拾百千万億兆"
_NUMBER = rf"[0-9{_D}](?:[0-9,.{_D}]{{0,{LONGEST - 2}}}[0-9{_D}])?"
_FREE = r"(?<![0-9a-z._])"
_FREE_OF_SIGNS = r"(?<![0-9a-z._/-])"
_FREE_OR_AFTER_A_SLASH = r"(?<![0-9a-z._-])(?<![0-9a-z._-]/)"
"""電話/03-… begins after the slash, a/03-… does not."""
_END = r"(?![0-9a-su-z]|[./-][0-9a-z])"
"""A t may follow: 2025-07-08T09:00."""
_LETTERS = {"m": "明治", "t": "大正", "s": "昭和", "h": "平成", "r": "令和"}
_SIGNS = {"明": "明治", "大": "大正", "昭": "昭和", "平": "平成", "令": "令和"}
_DAY_OF_WEEK = r"(?: ?\((?:月|火|水|木|金|土|日)(?:曜日?)?\))?"
_YEAR_END = "年(?!間|度?以)"
_YEAR_OF_LETTER = rf"年(?!間|度?以|[毎次{_K}]|[0-9]+ ?[^0-9 月])"
"""S58年 and R7年度 are years; in 装置S3年1回 the letter belongs to something else."""
_DATES = (
    rf"(?P<era>{'|'.join(ERAS)}) ?(?P<ey>元|{_N}{{1,3}}) ?{_YEAR_END}"
    rf"(?: ?(?P<em>{_N}{{1,2}}) ?月(?: ?(?P<ed>{_N}{{1,3}}) ?日(?!間))?)?",
    rf"{_FREE}(?P<y>[12][0-9]{{3}}|[一二][〇零一二三四五六七八九]{{3}}) ?{_YEAR_END}"
    rf"(?: ?(?P<m>{_N}{{1,2}}) ?月(?: ?(?P<d>{_N}{{1,3}}) ?日(?!間))?)?",
    rf"(?:{_FREE_OF_SIGNS}(?P<l>[mtshr])|(?P<long>{'|'.join(ERAS)}) ?|(?<![一-鿿])(?P<sign_of_era>[明大昭平令]))\.?"
    rf"(?P<ly>[0-9]{{1,2}})[./・-](?P<lm>[0-9]{{1,2}})[./・-](?P<ld>[0-9]{{1,2}}){_END}",
    rf"{_FREE_OR_AFTER_A_SLASH}(?P<ny>[12][0-9]{{3}})(?P<sep>[./-])(?P<nm>[0-9]{{1,2}})(?P=sep)(?P<nd>[0-9]{{1,2}}){_END}",
    rf"{_FREE_OR_AFTER_A_SLASH}(?P<sy>(?:1[89]|2[01])[0-9]{{2}})/(?P<sm>0?[1-9]|1[0-2]){_END}",
    rf"{_FREE_OF_SIGNS}(?P<le>[mtshr])(?P<ley>元|[0-9]{{1,2}}){_YEAR_OF_LETTER}"
    rf"(?:(?P<lem>[0-9]{{1,2}}) ?月(?: ?(?P<led>[0-9]{{1,2}}) ?日(?!間))?)?",
    rf"{_FREE}(?P<am>{_N}{{1,2}}) ?月 ?(?P<ad>{_N}{{1,3}}) ?日(?!間)",
)
_DATE = "(?P<date>" + "|".join(f"(?:{one}{_DAY_OF_WEEK})" for one in _DATES) + ")"
_COMPACT = (
    rf"(?P<compact>{_FREE_OF_SIGNS}(?P<cy>(?:1[89]|2[01])[0-9]{{2}})(?P<cm>0[1-9]|1[0-2])(?P<cd>[0-3][0-9])"
    r"(?![0-9a-z_]|[.,/:-][0-9a-z]))"
)
_TIME = (
    rf"(?P<time>(?P<half>午[前後] ?)?{_FREE}(?:(?(half)|(?!一時(?![0-9{_K}半])))(?P<th>{_N}{{1,3}}) ?"
    rf"時(?![間点代制限速期刻])(?: ?(?:(?P<tm>{_N}{{1,3}}) ?分|(?P<th2>半)))?"
    r"|(?P<ch>[0-9]{1,2}):(?P<cmin>[0-5][0-9])(?::00)?(?: ?(?P<pm>[ap])\.?m\b\.?)?(?![0-9a-z:]|[.,][0-9])))"
)
_PHONE = (
    rf"(?P<phone>{_FREE_OR_AFTER_A_SLASH}(?<!\+)(?:\+81[- ]?(?:\(0\))?|\(0|0)[0-9]{{1,4}}\)?"
    r"[-( ]?[0-9]{1,4}[-) ]?[0-9]{3,4}(?![0-9a-z_]|-[0-9a-z]))"
)
_DOCUMENT = rf"(?P<document>(?P<office>[一-鿿々]{{1,8}})第(?P<of>{_NUMBER})号(?![機車室線棟館]))"
_PAGES_OF_LAW = "条項章節編款目頁年度月日"
_HOURS = rf"(?P<hours>(?P<h>{_NUMBER}) ?時間 ?(?P<min>{_NUMBER}) ?分(?!の[0-9]))"
_CURRENCIES = {
    "¥": "円",
    "\\": "円",
    "$": "ドル",
    "€": "ユーロ",
    "£": "ポンド",
    "jpy": "円",
    "usd": "ドル",
    "us$": "ドル",
    "eur": "ユーロ",
}
_MONEY = rf"(?P<money>(?P<currency>[¥\\$€£]|(?<![0-9a-z])(?:jpy|usd|us\$|eur)) ?(?P<yen>{_NUMBER}))"
_ORDINALS = "条|章|項|節|編|回|期|次|号|版|巻|話|世代|工場|課|部|係|棟|位|類|種|級"
_RANK = rf"(?P<rank>第(?P<nth>{_NUMBER}) ?(?P<of_what>{_ORDINALS}))"
_PLACES = (
    ("0-9", "[0-9,.]*"),
    (r"¥\\$€£", rf" ?[0-9{_K}百千]"),
    ("jue", rf"(?<![0-9a-z].)(?:(?<=j)py|(?<=u)sd|(?<=u)s\$|(?<=e)ur) ?[0-9{_K}百千]"),
    ("第", f"[0-9{_K}百千]"),
    ("午", "[前後]"),
    (r"\(", "0[0-9]"),
    (r"\+", "81"),
    (r"\-", "(?=[0-9])"),
    ("マ", "イナス"),
    *((era[0], era[1:]) for era in ERAS),
    ("mtshr", r"(?<![0-9a-z._/-].)(?=元年|\.?[0-9]{1,2}[./年-])"),
    ("明大昭平令", r"(?<![一-鿿].)(?=\.?[0-9]{1,2}[./-])"),
)
"""Where a value may begin, by its first character: a look at these places is far cheaper than at every character."""


class Value(msgspec.Struct, frozen=True, array_like=True):
    """A value in a folded text: its span there, its one form, what it is, and forms of what it is part of."""

    start: int
    end: int
    key: str
    kind: str
    """`date`, `time`, `amount`, `ordinal`, `phone` or `document_number`."""
    wider: tuple[str, ...] = ()
    """Of a date: its month, its year and the day of any year."""
    in_kanji: bool = False
    """True when its number is written in kanji: then it may be part of a word (十分, 一部, 千葉)."""

    @property
    def names_a_thing(self) -> bool:
        """Say whether it is an identifier: nothing but the very same one will do."""
        return self.kind in ("phone", "document_number")


class Values:
    """Finds values in folded texts, with one set of units. Immutable and safe to share between threads."""

    def __init__(self, units: Units) -> None:
        """Compile."""
        self._units = units
        self._known: dict[str, Value | None] = {}
        before = f"(?P<before>(?:{'|'.join(units.words_before)}) ?)?" if units.words_before else "(?P<before>(?!))?"
        amount = (
            rf"(?P<amount>(?P<sign>(?<![0-9a-z])-|マイナス ?)?{before}{_FREE}"
            rf"(?P<number>{_NUMBER})(?P<unit>{units.expression}))"
        )
        self._expression = re.compile("|".join((_PHONE, _DATE, _TIME, _HOURS, _RANK, _MONEY, amount, _COMPACT)))
        ends = "".join(sorted({re.escape(spelling[0]) for spelling in units.spellings} | set("年月時 ")))
        in_kanji = f"(?<![{_D}].)[{_D}]{{0,{LONGEST}}}(?=[{ends}])"  # bounded: it is looked for everywhere
        places = [*_PLACES, (f"{_K}百千壱弐参拾", in_kanji), *((word[0], word[1:]) for word in units.words_before)]
        # One set of characters in front: only so the regular expression skips from place to place.
        first = "".join(characters for characters, _ in places)
        rest = "|".join(f"(?<=[{characters}]){rest}" for characters, rest in places)
        self._start = re.compile(f"[{first}](?:{rest})")
        self._document = re.compile(_DOCUMENT)

    def find(self, folded: str) -> list[Value]:
        """Return the values of a folded text in reading order, none overlapping."""
        found: list[Value] = []
        done = 0
        for place in self._start.finditer(folded):
            start = place.start()
            if start >= done and (match := self._expression.match(folded, start)):
                done = match.end()
                if value := self._remembered(match):
                    found.append(value)
        if "第" not in folded:
            return found
        numbers = list(self._documents(folded, found))
        kept = [v for v in found if not any(v.start < n.end and n.start < v.end for n in numbers)]
        return sorted([*kept, *numbers], key=lambda value: value.start)

    def _remembered(self, match: re.Match[str]) -> Value | None:
        """Values repeat in a corpus: what was read of one writing is kept."""
        written, start = match.group(), match.start()
        if written[-1] in "分日" and match["unit"] and match.string[start - 1 : start] in ("時", "月"):
            return None  # a clock's, or a calendar's
        if written not in self._known:
            if len(self._known) > _REMEMBERED:
                self._known.clear()
            self._known[written] = self._value(match)
        known = self._known[written]
        return known and Value(start, match.end(), known.key, known.kind, known.wider, known.in_kanji)

    def _value(self, match: re.Match[str]) -> Value | None:
        if match["date"] or match["compact"]:
            return _date(match)
        if match["time"]:
            return _time(match)
        if match["phone"]:
            return _phone(match)
        if match["hours"]:
            return self._hours(match)
        if match["rank"]:
            return _ordinal(match)
        number = parse_number(match["number"] or match["yen"])
        if number is None:
            return None
        if match["money"]:
            key = self._units.amount(number, _CURRENCIES[match["currency"]])
            return Value(*match.span(), key, "amount", (), _kanji(match["yen"]))
        if match["sign"]:
            number = -number
        key = self._units.amount(number, match["unit"].strip(), (match["before"] or "").strip())
        return Value(*match.span(), key, "amount", (), _kanji(match["number"]))

    def _hours(self, match: re.Match[str]) -> Value | None:
        hours, minutes = parse_number(match["h"]), parse_number(match["min"])
        if hours is None or minutes is None:
            return None
        key = self._units.amount(hours * 60 + minutes, "分")
        return Value(*match.span(), key, "amount", (), _kanji(match["h"]))

    def _documents(self, folded: str, found: list[Value]) -> Iterator[Value]:
        """Yield numbers of documents (総務第12号), but not the third item of a clause (第1項第3号)."""
        dates = [value for value in found if value.kind == "date"]
        for match in self._document.finditer(folded):
            number = parse_number(match["of"])
            start = max([match.start("office"), *(d.end for d in dates if d.start < match.start("of"))])
            office = folded[start : match.end("office")]
            if number is not None and office and office[-1] not in _PAGES_OF_LAW:
                yield Value(start, match.end(), f"{office}第{number_text(number)}号", "document_number")


def _date(match: re.Match[str]) -> Value | None:
    part = match.groupdict()
    if part["am"]:
        month, day = _small(part["am"]), _small(part["ad"])
        if not (1 <= month <= 12 and 1 <= day <= 31):
            return None
        return Value(*match.span(), f"{month:02}-{day:02}", "date", (), _kanji(part["am"]))
    year = _year(part)
    month_text = part["em"] or part["m"] or part["lm"] or part["nm"] or part["sm"] or part["lem"] or part.get("cm")
    day_text = part["ed"] or part["d"] or part["ld"] or part["nd"] or part["led"] or part.get("cd")
    if not 1 <= year <= 9999:
        return None
    if month_text is None:
        return Value(*match.span(), f"{year:04}", "date")
    month = _small(month_text)
    if not 1 <= month <= 12:
        return None
    if day_text is None:
        return Value(*match.span(), f"{year:04}-{month:02}", "date", (f"{year:04}",))
    day = _small(day_text)
    try:
        date(year, month, day)
    except ValueError:
        return None
    wider = (f"{year:04}-{month:02}", f"{year:04}", f"{month:02}-{day:02}")
    return Value(*match.span(), f"{year:04}-{month:02}-{day:02}", "date", wider)


def as_date(text: str) -> Value | None:
    """Return a whole folded text as a date, None when it is none."""
    match = _WHOLE_DATE.fullmatch(text)
    return _date(match) if match else None


_WHOLE_DATE = re.compile(_DATE)


def _year(part: dict[str, str | None]) -> int:
    if western := part["y"] or part["ny"] or part["sy"] or part.get("cy"):
        return _small(western)
    sign = _SIGNS.get(part["sign_of_era"] or "")
    era = part["era"] or part["long"] or sign or _LETTERS[part["l"] or part["le"] or ""]
    count_text = part["ey"] or part["ly"] or part["ley"] or ""
    count = 1 if count_text == "元" else _small(count_text)
    return ERAS[era].year + count - 1 if count else 0


def _time(match: re.Match[str]) -> Value | None:
    """Read a time of day; without 午前 or 午後 the hours are those of 24."""
    part = match.groupdict()
    hour = _small(part["th"] or part["ch"]) if (part["th"] or part["ch"]) not in ("〇", "零") else 0
    minute = 30 if part["th2"] else _small(part["tm"] or part["cmin"])
    if (part["half"] or part["pm"]) and hour >= 12:
        return None
    if (part["half"] or "").startswith("午後") or part["pm"] == "p":
        hour += 12
    if hour > 24 or minute > 59:
        return None
    return Value(*match.span(), f"{hour:02}:{minute:02}", "time", (), not part["half"] and _kanji(part["th"] or "0"))


def _small(text: str | None) -> int:
    """Read a number of a calendar; 0 for what is none."""
    number = parse_number(text or "")
    return int(number) if number is not None else 0


def _phone(match: re.Match[str]) -> Value | None:
    written = match["phone"]
    digits = "".join(filter(str.isdigit, written))
    if written.startswith("+81"):
        digits = "0" + digits[2:].removeprefix("0")
    if len(digits) not in (10, 11) or digits[1] == "0":
        return None
    return Value(*match.span(), digits, "phone")


def _ordinal(match: re.Match[str]) -> Value | None:
    number = parse_number(match["nth"])
    if number is None:
        return None
    return Value(*match.span(), f"第{number_text(number)}{match['of_what']}", "ordinal")


def _kanji(number: str) -> bool:
    return not number[0].isascii()
