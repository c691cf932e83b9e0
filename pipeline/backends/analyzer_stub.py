"""A stand-in for the Japanese analyzer: no model, no processes, the same identifiers and bigrams.

For tests of faults, sizes and scale, behind the same port. Its terms are the identifiers, the ASCII
words and the bigrams of everything else, so Japanese is searchable; its mentions are runs of katakana.
"""

import re
from collections.abc import Sequence

from pipeline.backends.stub_faults import StubFaults
from pipeline.text.identifiers import Identifiers, as_mentions
from pipeline.text.normalize import NORMALIZER_VERSION, fold, matching_form, name_key, source_span
from pipeline.text.readings import as_katakana
from pipeline.text.terms import bigrams, blank_out
from schemas.change_event import Lane
from schemas.document import Analysis, AnalyzedText, QueryForm, Token
from schemas.knowledge import Mention

_TERM = re.compile(r"[0-9a-z]+|[^\W_0-9a-z]+")
_KATAKANA = re.compile("[ァ-ヺ][ァ-ヺー]{3,}")


class StubAnalyzer:
    """Implements `pipeline.ports.models.Analyzer` by simple rules, about 400,000 characters a second."""

    def __init__(self, identifiers: Identifiers, faults: StubFaults | None = None) -> None:
        self._identifiers = identifiers
        self.faults = faults if faults is not None else StubFaults()
        self.dictionary = ""
        self.version = f"stub-analyzer-1+n{NORMALIZER_VERSION}+{identifiers.version}"

    async def tokens(self, texts: Sequence[str], *, lane: Lane = "live") -> list[Analysis]:
        """Return identifiers, and bigrams as terms."""
        await self.faults.before(texts)
        return [self._analyze(text) for text in texts]

    async def mentions(self, texts: Sequence[str], *, lane: Lane = "live") -> list[tuple[Mention, ...]]:
        """Return the runs of four or more katakana as concepts."""
        await self.faults.before(texts)
        return [
            tuple(
                Mention(m.start(), m.end(), m.group(), "concept", name_key(m.group()), "ner", 0.5)
                for m in _KATAKANA.finditer(text)
            )
            for text in texts
        ]

    async def questions(self, texts: Sequence[str]) -> list[AnalyzedText]:
        """Return tokens, and as what to ask the terms, and each run of Japanese as a word that no dictionary knows."""
        asked = []
        for text, analysis in zip(texts, await self.tokens(texts), strict=True):
            rest = blank_out(fold(text)[0], self._identifiers.find_folded(fold(text)[0]))
            runs = [pairs for run in _TERM.findall(rest) if not run.isascii() and (pairs := bigrams(run))]
            form = QueryForm(terms=tuple(dict.fromkeys(analysis.terms)), runs=tuple(runs))
            asked.append(AnalyzedText(analysis, form))
        return asked

    async def places(self, texts: Sequence[str]) -> list[list[Token]]:
        """Return the terms with their spans."""
        await self.faults.before(texts)
        return [_tokens(text, self._identifiers) for text in texts]

    async def readings(self, texts: Sequence[str]) -> list[str]:
        """Return the texts in katakana: kanji are not read."""
        await self.faults.before(texts)
        return [as_katakana(fold(text)[0]) for text in texts]

    async def close(self) -> None:
        """Do nothing."""

    def _analyze(self, text: str) -> Analysis:
        folded, _ = fold(text)
        found = self._identifiers.find_folded(folded)
        return Analysis(
            terms=tuple(token.term for token in _tokens(text, self._identifiers)),
            bigrams=bigrams(matching_form(folded)),
            identifiers=tuple(i.key for i in found),
            mentions=as_mentions(self._identifiers.find(text), text),
        )


def _tokens(text: str, identifiers: Identifiers) -> list[Token]:
    """Return identifiers whole, ASCII words, and bigrams of everything else."""
    folded, offsets = fold(text)
    found = identifiers.find_folded(folded)
    tokens = [(i.start, i.end, i.key, "identifier") for i in found]
    for run in _TERM.finditer(blank_out(folded, found)):
        word, start = run.group(), run.start()
        if word.isascii() or len(word) == 1:
            tokens.append((start, run.end(), word, "word"))
        else:
            tokens += [(start + n, start + n + 2, word[n : n + 2], "word") for n in range(len(word) - 1)]
    return [Token(*source_span(offsets, start, end), term, kind) for start, end, term, kind in sorted(tokens)]
