"""Synonyms: words for one thing, by which a question also finds what another word says, for less."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache
from importlib.resources import files

import msgspec

Terms = tuple[str, ...]
"""A word, as index terms."""

SUDACHI_WEIGHT = 0.2
"""Of a term that Sudachi's synonym groups add, against one that was typed. Measured: see ops/bench/RESULTS.md."""
USER_WEIGHT = 0.8
"""Of a term that the user's own dictionary adds."""
MOST = 24
"""Terms that are added to one question."""


class Synonym(msgspec.Struct, frozen=True, array_like=True):
    """A term that may stand for some of a question's, by the numbers `start` to `end` of these."""

    term: str
    weight: float
    start: int
    end: int


class SynonymGroup(msgspec.Struct, frozen=True, array_like=True):
    """Words for one thing."""

    members: tuple[Terms, ...]
    weight: float


class Synonyms:
    """Finds synonyms of the words of a question. Immutable."""

    def __init__(self, groups: Iterable[SynonymGroup]) -> None:
        """Take groups; the first that a word belongs to counts before later ones."""
        self._groups = tuple(groups)
        self._by_first: dict[str, list[tuple[Terms, SynonymGroup]]] = defaultdict(list)
        for group in self._groups:
            for member in group.members:
                self._by_first[member[0]].append((member, group))
        for found in self._by_first.values():
            found.sort(key=lambda pair: -len(pair[0]))

    def of(self, terms: Sequence[str]) -> list[Synonym]:
        """Return further terms, each once: those of the longest words that the terms spell.

        Only words of one term: of a compound, its parts would find anything.
        """
        there = set(terms)
        added: dict[str, Synonym] = {}
        at = 0
        while at < len(terms):
            matches = self._at(terms, at)
            for member, group in matches:
                for other in group.members:
                    if other != member and len(other) == 1 and other[0] not in there:
                        found = Synonym(other[0], group.weight, at, at + len(member))
                        added[found.term] = max(added.get(found.term, found), found, key=lambda one: one.weight)
            at += max((len(member) for member, _ in matches), default=1)
        return sorted(added.values(), key=lambda one: -one.weight)[:MOST]

    def _at(self, terms: Sequence[str], at: int) -> list[tuple[Terms, SynonymGroup]]:
        """Return the longest words that begin here, one of each kind of group."""
        found = [
            (member, group)
            for member, group in self._by_first.get(terms[at], ())
            if tuple(terms[at : at + len(member)]) == member
        ]
        longest = len(found[0][0]) if found else 0
        return [(member, group) for member, group in found if len(member) == longest]


@lru_cache(maxsize=1)
def sudachi_groups() -> tuple[SynonymGroup, ...]:
    """Return Sudachi's groups, as `ops.sudachi_synonyms` wrote them."""
    text = files("schemas").joinpath("synonyms/sudachi.tsv").read_text("utf-8")
    return tuple(
        SynonymGroup(tuple(tuple(member.split(" ")) for member in line.split("\t")), SUDACHI_WEIGHT)
        for line in text.splitlines()
    )
