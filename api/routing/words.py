"""The word lists of routing and answering, read from schemas/patterns/routing.yaml."""

import re
from functools import lru_cache
from pathlib import Path
from typing import Literal

import msgspec
import yaml

import schemas
from pipeline.errors import InvalidConfiguration
from pipeline.text.normalize import fold

ROUTING_FILE = Path(schemas.__file__).parent / "patterns" / "routing.yaml"


class _Cues(msgspec.Struct, forbid_unknown_fields=True):
    words: list[str] = []
    patterns: list[str] = []
    longest: int = 0


class _Focus(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    question: list[str]
    answer: list[str]


class RelationWeight(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"inward": "in"}):
    """What is left of a path's strength after one edge."""

    out: float
    inward: float

    def along(self, direction: Literal["out", "in"]) -> float:
        """Return the weight of walking this way."""
        return self.out if direction == "out" else self.inward


class _File(msgspec.Struct, forbid_unknown_fields=True):
    relation: _Cues
    lookup: _Cues
    focus: list[_Focus]
    relations: dict[str, RelationWeight]
    labels: dict[str, str]
    topics: list[str]


class Cues:
    """Words and patterns, matched on folded text."""

    def __init__(self, words: list[str], patterns: list[str] | None = None) -> None:
        """Fold the words and compile the patterns."""
        self._words = tuple(fold(word)[0] for word in words)
        self._patterns = tuple(re.compile(pattern) for pattern in patterns or [])

    def found(self, folded: str) -> str:
        """Return the first word or pattern match, or ""."""
        for word in self._words:
            if _stands(folded, word):
                return word
        for pattern in self._patterns:
            if match := pattern.search(folded):
                return match.group().strip()
        return ""

    def count(self, folded: str) -> int:
        """Return how many of the words are there."""
        return sum(_stands(folded, word) for word in self._words)


class Focus(msgspec.Struct, frozen=True):
    """What a question is after."""

    name: str
    question: Cues
    answer: Cues


class RoutingWords(msgspec.Struct, frozen=True, kw_only=True):
    """All lists, ready to use."""

    relation: Cues
    lookup: Cues
    longest_lookup: int
    focuses: tuple[Focus, ...]
    relations: dict[str, RelationWeight]
    labels: dict[str, str]
    topics: frozenset[str]
    """Predicates that say what a document is about."""

    def focus(self, folded: str) -> Focus | None:
        """Return what the question is after, if a word tells."""
        return next((focus for focus in self.focuses if focus.question.found(folded)), None)

    def weight(self, predicate: str, direction: Literal["out", "in"]) -> float:
        """Return the weight of an edge."""
        return self.relations.get(predicate, self.relations["default"]).along(direction)


@lru_cache(maxsize=4)
def routing_words(path: Path = ROUTING_FILE) -> RoutingWords:
    """Read and compile the file. Raises InvalidConfiguration with file and reason."""
    try:
        file = msgspec.convert(yaml.safe_load(path.read_text("utf-8")), _File)
        return RoutingWords(
            relation=Cues(file.relation.words, file.relation.patterns),
            lookup=Cues(file.lookup.words, file.lookup.patterns),
            longest_lookup=file.lookup.longest,
            focuses=tuple(Focus(f.name, Cues(f.question), Cues(f.answer)) for f in file.focus),
            relations={"default": RelationWeight(0.5, 0.5), **file.relations},
            labels=file.labels,
            topics=frozenset(file.topics),
        )
    except (OSError, yaml.YAMLError, msgspec.ValidationError, re.error) as error:
        raise InvalidConfiguration(f"{path}: {error}") from error


def _stands(folded: str, word: str) -> bool:
    """Look for a word; an ASCII one must be whole."""
    at = folded.find(word)
    if at < 0 or not word.isascii() or not word[:1].isalpha():
        return at >= 0
    return re.search(rf"(?<![a-z]){re.escape(word)}(?![a-z])", folded) is not None
