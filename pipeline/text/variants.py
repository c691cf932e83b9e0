"""Written variants: kanji, company forms, katakana and words in two shapes; the tables are in schemas/patterns."""

import hashlib
import re
from functools import lru_cache
from importlib.resources import files

import yaml

_TEXT = files("schemas").joinpath("patterns/variants.yaml").read_text("utf-8")
_TABLES = yaml.safe_load(_TEXT)

VARIANTS_VERSION = hashlib.sha256(_TEXT.encode()).hexdigest()[:6]
"""Changes with the tables: part of every analyzer version."""

KANJI_VARIANTS: dict[str, str] = {pair[0]: pair[1] for pair in _TABLES["kanji"].split()}
"""Variant to usual form, one character each. 斉 and 斎 stay two: 斉藤 and 斎藤 are two names."""

COMPANY_FORMS: dict[str, str] = _TABLES["company_forms"]
"""What stands in brackets (㈱ is (株) after NFKC) and the form written out."""

WRITTEN_OUT: dict[str, str] = _TABLES["company_words"]
"""Short forms that stand without brackets."""

ALWAYS_WRITTEN_OUT = frozenset(_TABLES["company_forms_always"])
WRITTEN_OUT_BEFORE_A_NAME = frozenset(_TABLES["company_forms_before_a_name"])

_KATAKANA: dict[str, str] = _TABLES["katakana"]
_FIRST = "".join(sorted({variant[0] for variant in _KATAKANA}))
KATAKANA_VARIANT = re.compile(f"[{_FIRST}][ァィゥェォャュョ]?")
"""What `usual_spelling` may have another spelling for. Begins with a set of characters: so it is quick to look for."""


def katakana_form(text: str) -> str:
    """Return the text with one spelling of each sound: ヴァイオリン as バイオリン."""
    return KATAKANA_VARIANT.sub(_usual, text)


def usual_spelling(written: str) -> str:
    """Return the usual spelling of what KATAKANA_VARIANT matched, never a longer one; mostly the same."""
    return _KATAKANA.get(written) or _KATAKANA.get(written[0], written[0]) + written[1:]


def _usual(match: re.Match[str]) -> str:
    return usual_spelling(match.group())


@lru_cache(maxsize=1)
def usual_words() -> dict[str, str]:
    """Return terms that have another usual form, as the file has them."""
    return dict(_TABLES["words"])
