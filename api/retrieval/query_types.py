"""What kind of query this is, by rules, with the reasons: the weights of retrieval depend on it."""

import re
from collections.abc import Sequence
from typing import Literal

import msgspec

from schemas.document import Analysis, QueryForm

QueryType = Literal["identifier", "proper_noun", "natural_sentence", "concept", "long_compound", "short_keyword"]
TYPES: tuple[QueryType, ...] = (
    "identifier",
    "proper_noun",
    "natural_sentence",
    "concept",
    "long_compound",
    "short_keyword",
)

_ASKS = re.compile(
    r"[??]|(?:です|ます|でしょう|だろう|ある|いる|ない|った|んだ|る|の|何|誰|なに|だれ|いつ|どこ|どれ|どちら|いくつ|いくら)か$"
    r"|なぜ|どう(?:して|やって|すれ|いう|い|な|し|扱|変|違)|どの|どん|どれ|どこ|どちら|いつ|誰|だれ|何|なに|いくら|いくつ"
    r"|(?:下さい|ください|教えて)"
    r"|(?i:\b(?:what|why|how|who|when|where|which)\b)"
)
_TELLS = re.compile(r"(?:です|ます|ました|でした|は|とは)$")
_PHRASE = re.compile(r"[^\sぁ-ゖ](?:[がのをにへでとはもや]|[ぁ-ゖ]{2,})\S")
"""A particle, or an ending, that joins a word to the next."""
_COMPOUND = re.compile(r"[一-鿿㐀-䶿々〆ァ-ヺー]{8,}")
_WORDS = 3
"""Up to so many words, as analyzed or as set apart, are keywords when no particle joins them."""
_NAMED = 0.5
_READ = 1_000
"""Characters: nobody asks at greater length, and any text is to be told in no time."""


class Typed(msgspec.Struct, frozen=True):
    """A kind of query, and why."""

    kind: QueryType
    reasons: tuple[str, ...]


def query_type(text: str, analysis: Analysis, form: QueryForm) -> Typed:
    """Tell the kind; the first rule that holds decides. Takes any text, some microseconds."""
    words = [term for term in dict.fromkeys(analysis.terms) if term not in analysis.identifiers]
    named = [term for term in form.names if term in words]
    if analysis.identifiers and not words:
        return Typed("identifier", (f"nothing but {_some(analysis.identifiers)}",))
    said = text[:_READ].strip().rstrip("。.")
    if match := _ASKS.search(said) or _TELLS.search(said):
        return Typed("natural_sentence", (f"asks or tells: {match.group()}",))
    if text.rstrip().endswith("。"):
        return Typed("natural_sentence", ("ends as a sentence",))
    if named and len(named) >= _NAMED * len(words):
        return Typed("proper_noun", (f"names: {_some(named)}",))
    if _COMPOUND.fullmatch(said):
        return Typed("long_compound", ("one run of kanji and katakana",))
    if _PHRASE.search(said) and len(words) > 1:
        return Typed("concept", ("describes without asking or naming",))
    if min(len(words), len(said.split())) <= _WORDS:
        return Typed("short_keyword", (f"words: {_some(words)}" if words else "no word",))
    return Typed("concept", (f"{len(words)} words, few of them names",))


def _some(items: Sequence[str]) -> str:
    return ", ".join(items[:3]) + (", …" if len(items) > 3 else "")
