"""Normalization of Japanese text: one folded form for matching, with exact source offsets, and keys of names."""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache

from pipeline.text.variants import (
    ALWAYS_WRITTEN_OUT,
    COMPANY_FORMS,
    KANJI_VARIANTS,
    KATAKANA_VARIANT,
    VARIANTS_VERSION,
    WRITTEN_OUT,
    WRITTEN_OUT_BEFORE_A_NAME,
    katakana_form,
    usual_spelling,
)

NORMALIZER_VERSION = "4" + VARIANTS_VERSION
"""Part of every analyzer version: raise the number when any folded form changes."""

_SURROGATE = re.compile("[\ud800-\udfff]")
_MARK = "\u0300-\u036f\u3099\u309a\uff9e\uff9f"
_STABLE = "\\x00-\\x7f\u3001-\u3003\u3005-\u301b\u3041-\u3096\u309d\u309e\u30a0-\u30fe\u3400-\u4dbf\u4e00-\u9fff"
_HAS_MARK = re.compile(f"[{_MARK}]")
_UNSTABLE = re.compile(f"[^{_STABLE}]")
_UNSTABLE_CLUSTER = re.compile(f"[^{_STABLE}][{_MARK}]*|[{_STABLE}][{_MARK}]+")
"""What NFKC may change, without and with combining marks: everything else is copied without a look."""
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff\ufe00-\ufe0f\U000e0100-\U000e01ef]")
"""Soft hyphen, zero-width characters, byte order mark, variation selectors (also of kanji)."""
_HYPHENS = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\u2043\u02d7"
_ONE_TO_ONE = str.maketrans({**dict.fromkeys(_HYPHENS, "-"), "\u301c": "~", **KANJI_VARIANTS})
_VARIANT = re.compile(f"[{''.join(map(chr, _ONE_TO_ONE))}]")
_BAR_AS_HYPHEN = re.compile("ー(?<=[0-9a-z一-鿿]ー)(?=[0-9a-z一-鿿])")
"""What is rare comes first: to look behind at every character takes three times as long."""
_BAR_AS_LONG_VOWEL = re.compile(f"[{_HYPHENS}](?<=[ァ-ヺ].)(?=[ァ-ヺ])")
"""Somebody typed a dash for ー; a plain hyphen between two words stays."""
_COUNTER = re.compile("(?<=[一-鿿])[ヶヵ](?=[一-鿿])")
"""In 関ヶ原 and 一ヵ月; ケ is what Sudachi's dictionary has most of."""
_COMPANY = re.compile(
    rf"\(({'|'.join(sorted(COMPANY_FORMS, key=len, reverse=True))})\)|(?<![a-z])({'|'.join(WRITTEN_OUT)})"
)
_WORD_OF_KATAKANA = re.compile("[ァ-ヺー]{4,}")
_SPACE = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")
_SPACE_AT_JAPANESE = re.compile(r"(?<=[^\x00-\x7f]) | (?=[^\x00-\x7f])")
_QUOTES = " 「」『』【】〈〉《》\"'`“”‘’"
_COMPANY_WORD = re.compile(
    r"^(?:{0})|(?:{0})$|[ ,]*\b(?:co\.?[ ,]*ltd|inc|ltd|corp|corporation|llc|k\.k|kk)\.?$".format(
        "|".join(sorted({*COMPANY_FORMS.values(), "合同会社", "一般社団法人", "一般財団法人"}, key=len, reverse=True))
    )
)


def without_surrogates(text: str) -> str:
    """Replace lone surrogates, one for one, by U+FFFD: such text can be encoded, and offsets stand."""
    return _SURROGATE.sub("\ufffd", text)


def fold(text: str) -> tuple[str, Sequence[int]]:
    """Return the folded text and, for each of its characters, the offset in `text` that it came from.

    The offsets (a range where nothing moved, else a list) have one more entry, `len(text)`, for the end. Folding is
    NFKC, case folding, one hyphen, ー between ASCII letters or digits as a hyphen, usual kanji for their variants,
    written-out company forms, no invisible characters. Never raises. Use `source_span` to carry a match back.
    """
    offsets: Sequence[int]
    if _UNSTABLE.search(text):  # surrogates among them
        folded, offsets = _compose(without_surrogates(text))
    else:
        folded, offsets = text, range(len(text) + 1)
    folded, offsets = _fold_case(folded, offsets)
    if _VARIANT.search(folded):  # str.translate alone would be the slowest step; dashes are among them
        folded = _BAR_AS_LONG_VOWEL.sub("ー", folded).translate(_ONE_TO_ONE)
    if "(" in folded or any(short in folded for short in WRITTEN_OUT):
        folded, offsets = _write_out_companies(folded, offsets)
    if "ー" in folded:
        folded = _BAR_AS_HYPHEN.sub("-", folded)
    if "ヶ" in folded or "ヵ" in folded:
        folded = _COUNTER.sub("ケ", folded)
    return folded, offsets


def source_span(offsets: Sequence[int], start: int, end: int) -> tuple[int, int]:
    """Carry the span [start, end) of a folded text back to its source; `offsets` as `fold` gave them.

    A span that touches part of a folded cluster (㍿ is four folded characters) covers the whole of it.
    """
    if start >= end:
        return offsets[start], offsets[start]
    if offsets[end] > offsets[end - 1]:  # nearly always: the span ends with a cluster
        return offsets[start], offsets[end]
    return offsets[start], offsets[bisect_right(offsets, offsets[end - 1], lo=end - 1)]


def name_key(text: str) -> str:
    """Return the normalized key of an entity's name: equal for the usual ways of writing one name.

    Folded, katakana in one spelling, without the long-vowel mark at the end of katakana words of four
    or more characters (サーバー and サーバ), without spaces next to Japanese and quotes around. Company
    forms stay, written out: `company_core` takes them off. Idempotent; "" when nothing is left; never raises.
    """
    key = _name_key(text)
    for _ in range(3):  # taking spaces away may bring a letter and its mark together
        again = _name_key(key)
        if again == key:
            break
        key = again
    return key


def _name_key(text: str) -> str:
    spaced = _SPACE.sub(" ", fold(text)[0]).strip(_QUOTES)
    return drop_long_vowels(katakana_form(_SPACE_AT_JAPANESE.sub("", spaced))).strip(_QUOTES)


def name_form(folded: str) -> tuple[str, list[int]]:
    """Bring a folded text to the form of name keys; origins[i] is where character i came from, then the end.

    Every name that a text holds is a substring of this form, however the text spaces or lengthens it.
    """
    folded, places = _in_usual_katakana(folded)
    dropped = {match.start() for match in _SPACE_AT_JAPANESE.finditer(folded)}
    for match in _WORD_OF_KATAKANA.finditer(folded) if "ー" in folded else ():
        dropped.update(range(match.start() + len(_without_long_vowel(match)), match.end()))
    if not dropped:
        return folded, places
    kept = [i for i in range(len(folded)) if i not in dropped]
    return "".join(folded[i] for i in kept), [*(places[i] for i in kept), places[-1]]


def matching_form(folded: str) -> str:
    """Return the text of `name_form` alone, without where it came from."""
    return _SPACE_AT_JAPANESE.sub("", drop_long_vowels(katakana_form(folded)))


def _in_usual_katakana(folded: str) -> tuple[str, list[int]]:
    """Spell katakana one way; where each character came from, and the end."""
    if not KATAKANA_VARIANT.search(folded):
        return folded, list(range(len(folded) + 1))
    parts: list[str] = []
    places: list[int] = []
    done = 0
    for match in KATAKANA_VARIANT.finditer(folded):
        usual = usual_spelling(match.group())
        parts += [folded[done : match.start()], usual]
        places += [*range(done, match.start()), *range(match.start(), match.start() + len(usual))]
        done = match.end()
    return "".join([*parts, folded[done:]]), [*places, *range(done, len(folded) + 1)]


def company_core(key: str) -> str:
    """Return a name key without company forms at its ends (株式会社, 有限会社, co., ltd., ...).

    The key itself when nothing else would be left.
    """
    return _COMPANY_WORD.sub("", key).strip(" ,") or key


def drop_long_vowels(folded: str) -> str:
    """Take ー off the end of katakana words of four or more characters."""
    return _WORD_OF_KATAKANA.sub(_without_long_vowel, folded) if "ー" in folded else folded


def _without_long_vowel(match: re.Match[str]) -> str:
    word = match.group()
    short = word.rstrip("ー")
    return short if len(short) >= 3 else word


@lru_cache(maxsize=4096)
def _nfkc(cluster: str) -> str:
    return unicodedata.normalize("NFKC", _INVISIBLE.sub("", cluster))


def _compose(text: str) -> tuple[str, list[int]]:
    """NFKC cluster by cluster, because only so the offsets stay known."""
    parts: list[str] = []
    offsets: list[int] = []
    done = 0
    unstable = _UNSTABLE_CLUSTER if _HAS_MARK.search(text) else _UNSTABLE
    for match in unstable.finditer(text):
        start, end = match.span()
        if start > done:
            parts.append(text[done:start])
            offsets.extend(range(done, start))
        composed = _nfkc(match.group())
        parts.append(composed)
        offsets.extend([start] * len(composed))
        done = end
    parts.append(text[done:])
    offsets.extend(range(done, len(text) + 1))
    return "".join(parts), offsets


def _fold_case(text: str, offsets: Sequence[int]) -> tuple[str, Sequence[int]]:
    folded = text.casefold()
    if len(folded) == len(text):  # case folding never shortens, so each character kept its place
        return folded, offsets
    parts = [character.casefold() for character in text]
    spread = [offset for part, offset in zip(parts, offsets, strict=False) for _ in part]
    return "".join(parts), [*spread, offsets[-1]]


def _write_out_companies(text: str, offsets: Sequence[int]) -> tuple[str, Sequence[int]]:
    """(株) becomes 株式会社; forms that may mean something else only when one glyph (㈳) stood for them."""
    parts: list[str] = []
    spread: list[int] = []
    done = 0
    for match in _COMPANY.finditer(text):
        start, end = match.span()
        if match.group(1) and not _means_a_company(match, text) and offsets[start] != offsets[end - 1]:
            continue
        form = COMPANY_FORMS[match.group(1)] if match.group(1) else WRITTEN_OUT[match.group(2)]
        parts += [text[done:start], form]
        spread += [*offsets[done:start], *[offsets[start]] * len(form)]
        done = end
    return ("".join([*parts, text[done:]]), [*spread, *offsets[done:]]) if done else (text, offsets)


def _means_a_company(match: re.Match[str], text: str) -> bool:
    form, (start, end) = match.group(1), match.span()
    if form in ALWAYS_WRITTEN_OUT:
        return True
    before, after = text[start - 1 : start], text[end : end + 1]
    return form in WRITTEN_OUT_BEFORE_A_NAME and after.isalpha() and not before.isalpha()
