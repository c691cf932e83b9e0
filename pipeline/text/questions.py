"""What a lexical index is asked: the terms of a question, its synonyms, and pieces of words no dictionary knows."""

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

from pipeline.text.normalize import fold, matching_form
from pipeline.text.synonyms import Synonym, SynonymGroup, Synonyms, sudachi_groups
from pipeline.text.terms import SUDACHI_MAX_CHARACTERS, Placed, TermAnalyzer, bigrams, blank_out, pieces
from schemas.document import QueryForm, Variant

if TYPE_CHECKING:
    from sudachipy import MorphemeList

_SCRIPT_RUN = re.compile(r"[ァ-ヺー]{2,}|[一-鿿㐀-䶿々〆]{2,}|[a-z]{3,}|[^\W\d_a-zァ-ヺー一-鿿㐀-䶿々〆ぁ-ゖ]{2,}")
_PROPER_NOUN = "固有名詞"
_NAMES_IN = 1_000
"""Characters looked at for names: they tell the kind of a query, and nobody asks at greater length."""
_LONG = 4
"""Characters of a compound from which on a text that holds the whole of it holds the word."""
MOST_RUNS = 8
MOST_VARIANTS = 4
_SURE = 0.5
"""Weight of a synonym from which on a passage is also looked at as if the question had been asked with it."""
PART_WEIGHT = 0.5
"""Of a term inside of a compound, against the compound."""


LookedAt = tuple[str, "MorphemeList"]
"""A piece of a folded text without identifiers, and its morphemes."""


class QuestionAnalyzer:
    """Turns questions into query forms, with the very terms of the documents. May be shared between threads."""

    def __init__(self, analyzer: TermAnalyzer, own: Iterable[SynonymGroup] = ()) -> None:
        """Take the documents' analyzer and the user's own synonyms."""
        self._analyzer, self._own = analyzer, tuple(own)
        self._synonyms: Synonyms | None = None

    def form(self, text: str) -> QueryForm:
        """Return what to ask. Takes any text."""
        folded, _ = fold(text)
        marks = self._analyzer.marks(folded)
        # Who asks for a document by its number wants no other of the same office.
        placed = [place for place in self._analyzer.placed(folded, marks) if place[3] != "inside"]
        terms, parts = _terms(placed)
        words = [one for one in placed if one[3] in ("word", "compound", "identifier") and one[2] in terms]
        others = self._known_synonyms().of([term for _, _, term, _ in words])
        synonyms = dict.fromkeys(parts, PART_WEIGHT) | {one.term: one.weight for one in others}
        rest = blank_out(folded, marks.identifiers)
        tokenize = self._analyzer.morphemes.tokenize
        looked_at = [(piece, tokenize(piece)) for _, piece in pieces(rest, SUDACHI_MAX_CHARACTERS)]
        return QueryForm(
            terms=tuple(terms),
            synonyms=tuple(synonyms.items()),
            variants=tuple(_variants(folded, words, terms, others)),
            runs=tuple(_unknown_runs(looked_at)),
            names=tuple(dict.fromkeys(self._names(looked_at[:1]))),
            spelled=tuple(dict.fromkeys((term, folded[a:b]) for a, b, term, _ in placed if folded[a:b] != term)),
        )

    def _known_synonyms(self) -> Synonyms:
        """Build at the first question: documents have no use for them."""
        if self._synonyms is None:
            self._synonyms = Synonyms((*self._own, *sudachi_groups()))
        return self._synonyms

    def _names(self, looked_at: Iterable[LookedAt]) -> Iterator[str]:
        """Yield the terms of proper nouns."""
        entry = self._analyzer.morphemes.entry
        for _, morphemes in looked_at:
            for morpheme in morphemes:
                if morpheme.begin() >= _NAMES_IN:
                    return
                if morpheme.part_of_speech()[1] == _PROPER_NOUN and (term := entry(morpheme).term):
                    yield term


def _unknown_runs(looked_at: Iterable[LookedAt]) -> Iterator[tuple[str, ...]]:
    """Yield the bigrams of runs of one script that are no word of the dictionary, or a long compound."""
    seen: set[str] = set()
    for piece, morphemes in looked_at:
        known = {morpheme.begin(): (morpheme.end(), morpheme.is_oov()) for morpheme in morphemes}
        for match in _SCRIPT_RUN.finditer(piece):
            run = matching_form(match.group())
            if run in seen or not _is_unknown(match, run, known):
                continue
            seen.add(run)
            if pairs := bigrams(run):
                yield pairs
            if len(seen) >= MOST_RUNS:
                return


def _terms(placed: list[Placed]) -> tuple[dict[str, None], set[str]]:
    """Return the terms to ask for, and those that are only parts of others.

    A question of values alone wants exactly them, not 7 and 月 of another date. Of 繰り越し and 保全推進課
    the parts count less than the whole.
    """
    values = _places(placed, "value")
    beside = any(kind in ("word", "number") and start not in values for start, _, _, kind in placed)
    if not values or beside:
        whole = _places(placed, "compound")
        terms: dict[str, None] = {}
        parts: set[str] = set()
        for start, _, term, kind in placed:
            if kind == "part" or (kind == "word" and start in whole):
                parts.add(term)
            else:
                terms[term] = None
        return terms, parts - terms.keys()
    exact: dict[tuple[int, int], str] = {}
    for start, end, term, kind in placed:
        if kind in ("value", "identifier"):
            exact.setdefault((start, end), term)
    return dict.fromkeys(exact.values()), set()


def _variants(folded: str, words: list[Placed], terms: Iterable[str], synonyms: Iterable[Synonym]) -> Iterator[Variant]:
    """Yield the question with a synonym in place of a word, for the surest synonyms."""
    sure = (one for one in synonyms if one.weight >= _SURE)
    for one in islice(sure, MOST_VARIANTS):
        typed = words[one.start : one.end]
        text = folded[: typed[0][0]] + one.term + folded[typed[-1][1] :]
        gone = {term: one.term for _, _, term, _ in typed}
        yield Variant(
            terms=tuple(dict.fromkeys(gone.get(term, term) for term in terms)),
            bigrams=bigrams(matching_form(text)),
            weight=one.weight,
        )


def _places(placed: list[Placed], wanted: str) -> set[int]:
    """Return the places that terms of a kind take."""
    return {at for start, end, _, kind in placed if kind == wanted for at in range(start, end)}


def _is_unknown(match: re.Match[str], run: str, known: dict[int, tuple[int, bool]]) -> bool:
    inside = [known[at] for at in range(match.start(), match.end()) if at in known]
    return any(oov for _, oov in inside) or (len(run) >= _LONG and len(inside) > 1)
