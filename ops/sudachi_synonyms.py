"""Writes schemas/synonyms/sudachi.tsv: the synonym groups of Sudachi's installed dictionary, as index terms.

`python -m ops.sudachi_synonyms` after a change of the pinned dictionary or of the terms; it takes about a minute.
"""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import schemas
from ops.sudachi_lexicon import words
from pipeline.text.patterns import load_identifiers
from pipeline.text.terms import TermAnalyzer

TARGET = Path(schemas.__file__).parent / "synonyms" / "sudachi.tsv"
_SHORTEST_ABBREVIATION = 4
"""Shorter ASCII words stand for too many things (SP is a smartphone, and much else)."""
_MOST_TERMS = 4


def words_of_groups() -> dict[int, set[str]]:
    """Return the normalized words of each synonym group."""
    groups: dict[int, set[str]] = defaultdict(set)
    for word in words():
        for group in word.groups:
            groups[group].add(word.normalized)
    return groups


def as_terms(groups: dict[int, set[str]], analyzer: TermAnalyzer) -> Iterator[list[str]]:
    """Yield groups of two or more words, as terms; words of several groups are in none, because they are ambiguous."""
    found = {group: {terms for word in words if (terms := _terms(word, analyzer))} for group, words in groups.items()}
    home: dict[tuple[str, ...], int] = {}
    several: set[tuple[str, ...]] = set()
    for group, members in found.items():
        for terms in members:
            if home.setdefault(terms, group) != group:
                several.add(terms)
    for _, members in sorted(found.items()):
        clear = sorted(" ".join(t) for t in members - several if len(t) <= _MOST_TERMS and _tells("".join(t)))
        if len(clear) > 1:
            yield clear


def _terms(word: str, analyzer: TermAnalyzer) -> tuple[str, ...]:
    """Return a word's terms; none where only one is left of several parts: できるだけ is not 出来る."""
    tokens = analyzer.tokens_with_offsets(word)
    if len(tokens) == 1 and tokens[0].end - tokens[0].start < len(word):
        return ()
    return analyzer.analyze(word).terms


def _tells(word: str) -> bool:
    return len(word) >= (_SHORTEST_ABBREVIATION if word.isascii() else 2)


def main() -> None:
    """Write the file."""
    lines = ["\t".join(group) for group in as_terms(words_of_groups(), TermAnalyzer(load_identifiers()))]
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{len(lines)} groups in {TARGET}")


if __name__ == "__main__":
    main()
