"""What each candidate holds of a question, counted once for all features."""

import re
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache

import msgspec

from pipeline.ports.reranker import RerankPassage, RerankQuestion
from pipeline.text.normalize import fold, matching_form
from pipeline.text.terms import bigrams

TITLE = 3
"""A word of the title counts as so many of the text."""
GRAMMAR = re.compile("[ぁ-ゖー]+")
_MOST_TERMS = 32
"""Of a question: more would cost time, and say nothing that these do not."""


class Asked(msgspec.Struct, frozen=True):
    """What is looked for in each candidate."""

    terms: tuple[str, ...]
    own: frozenset[str]
    """The terms again."""
    wanted: frozenset[str]
    """Terms and synonyms."""
    bigrams: frozenset[str]
    characters: tuple[str, ...]


class Held(msgspec.Struct, frozen=True):
    """What a candidate holds of the question, counted; of the rest only how much it is."""

    spots: list[tuple[int, str]]
    """Where the question's terms stand."""
    body: dict[str, int]
    """How often its terms and their synonyms stand in the text."""
    title: dict[str, int]
    length: int
    """Terms, those of the title as often as they count."""
    pairs: Counter[str]
    title_pairs: Counter[str]
    all_pairs: frozenset[str]
    number_of_pairs: int
    characters: frozenset[str]


def asked_of(question: RerankQuestion) -> Asked:
    """Return what to look for."""
    terms = question.terms[:_MOST_TERMS]
    return Asked(
        terms=tuple(terms),
        own=frozenset(terms),
        wanted=frozenset((*terms, *(term for term, _ in question.synonyms))),
        bigrams=frozenset(question.bigrams),
        characters=tuple(dict.fromkeys(GRAMMAR.sub("", "".join(question.bigrams)))),
    )


def held_by(passage: RerankPassage, asked: Asked) -> Held:
    """Return what the passage holds of it."""
    above = _title_bigrams(passage.title, tuple(passage.headings))
    wanted, own = asked.wanted, asked.own
    found = [(at, term) for at, term in enumerate(passage.terms) if term in wanted]
    pairs = Counter({pair: passage.bigrams.count(pair) for pair in asked.bigrams if pair in passage.bigrams})
    together = "".join((*passage.bigrams, *above))
    return Held(
        spots=[spot for spot in found if spot[1] in own],
        body=_counted(term for _, term in found),
        title=_counted(term for term in passage.title_terms if term in own),
        length=len(passage.terms) + TITLE * len(passage.title_terms),
        pairs=pairs,
        title_pairs=Counter(above),
        all_pairs=asked.bigrams.intersection(above).union(pairs),
        number_of_pairs=len(passage.bigrams),
        characters=frozenset(character for character in asked.characters if character in together),
    )


def _counted(terms: Iterable[str]) -> dict[str, int]:
    """Count a few terms: making a Counter of so few takes longer than counting them."""
    counts: dict[str, int] = {}
    for term in terms:
        counts[term] = counts.get(term, 0) + 1
    return counts


@lru_cache(maxsize=4_096)
def _title_bigrams(title: str, headings: tuple[str, ...]) -> tuple[str, ...]:
    """Remembered: candidates of one document share them, and folding is what takes the time."""
    return bigrams(matching_form(fold("\n".join((title, *headings)))[0]))
