"""A question as retrieval needs it: analyzed by the same analyzer as the documents, typed by rules, embedded."""

import asyncio
from collections.abc import Container, Sequence
from itertools import chain

import msgspec

from api.retrieval.query_types import query_type
from pipeline.errors import BackendUnavailable
from pipeline.ports.chunk_index import LexicalQuery
from pipeline.ports.runtime import Runtime
from pipeline.text.embeddable import beginning
from pipeline.text.naming import start_of
from pipeline.text.normalize import fold, matching_form
from pipeline.text.terms import bigrams
from schemas.document import Analysis, QueryForm, Token, Variant

MAX_TERMS = 64
MAX_BIGRAMS = 128
MAX_IDENTIFIERS = 8
_EMBEDDED_CHARACTERS = 2_000
_EMBEDDING_S = 5.0


class AnalyzedQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """The question and everything the models made of it."""

    text: str
    analysis: Analysis
    form: QueryForm
    query_type: str
    reasons: tuple[str, ...] = ()
    """Why it is of this type."""
    vector: bytes | None
    notes: tuple[str, ...] = ()
    """What went wrong on the way, for the answer's warnings."""

    @property
    def lexical(self) -> LexicalQuery:
        """What the lexical index is asked: words. Bigrams beside them cost nDCG and time (ops/bench/RESULTS.md)."""
        codes = set(self.identifiers)
        return LexicalQuery(terms=_distinct(tuple(t for t in self.form.terms if t not in codes), MAX_TERMS))

    @property
    def variants(self) -> tuple[Variant, ...]:
        """The question said by synonyms, its identifiers left out of the terms as in `lexical`."""
        codes = set(self.identifiers)
        return tuple(
            Variant(
                terms=_distinct(tuple(t for t in one.terms if t not in codes), MAX_TERMS),
                bigrams=one.bigrams[:MAX_BIGRAMS],
                weight=one.weight,
            )
            for one in self.form.variants
        )

    @property
    def codes(self) -> LexicalQuery:
        """What it is asked for the identifiers."""
        return LexicalQuery(terms=(), identifiers=self.identifiers)

    @property
    def pieces(self) -> LexicalQuery:
        """What it is asked when the words find little: parts of words that the dictionary does not know."""
        return LexicalQuery(terms=(), bigrams=_distinct(tuple(chain(*self.form.runs)), MAX_BIGRAMS))

    @property
    def identifiers(self) -> tuple[str, ...]:
        """The identifiers asked for."""
        return _distinct(self.analysis.identifiers, MAX_IDENTIFIERS)


async def analyze_question(runtime: Runtime, text: str) -> AnalyzedQuestion:
    """Analyze and embed at the same time. Without a vector the words can still find, and a note says so."""
    (asked,), (vector, notes) = await asyncio.gather(runtime.analyzer.questions([text]), _embed(runtime, text))
    typed = query_type(text, asked.analysis, asked.form)
    return AnalyzedQuestion(
        text=text,
        analysis=asked.analysis,
        form=asked.form,
        query_type=typed.kind,
        reasons=typed.reasons,
        vector=vector,
        notes=notes,
    )


def by_words(question: AnalyzedQuestion, because: str) -> AnalyzedQuestion:
    """Return the question without its vector, where there is a reason; the reason goes into the notes."""
    if not because or question.vector is None:
        return question
    return msgspec.structs.replace(question, vector=None, notes=(*question.notes, because))


def beside_numbers(question: AnalyzedQuestion, tokens: Sequence[Token]) -> AnalyzedQuestion:
    """Return the question without the words and pairs of its identifiers and of the dates that belong to them.

    `tokens`: those of its text, as `Analyzer.places` gives them.
    """
    text = question.text
    spans = [(start_of(text, tokens, one), one.end) for one in tokens if one.kind == "identifier"]
    inside = [any(start <= one.start < end for start, end in spans) for one in tokens]
    left = {one.term for one, its in zip(tokens, inside, strict=True) if not its}
    gone = {one.term for one, its in zip(tokens, inside, strict=True) if its} - left
    cuts = [0, *chain.from_iterable(spans), len(text)]
    remaining = " ".join(text[start:end] for start, end in zip(cuts[::2], cuts[1::2], strict=True))
    variants = tuple(msgspec.structs.replace(v, terms=_without(v.terms, gone)) for v in question.form.variants)
    form = msgspec.structs.replace(question.form, terms=_without(question.form.terms, gone), variants=variants)
    analysis = msgspec.structs.replace(
        question.analysis,
        terms=_without(question.analysis.terms, gone),
        bigrams=bigrams(matching_form(fold(remaining)[0])),
    )
    return msgspec.structs.replace(question, form=form, analysis=analysis)


def _without(terms: tuple[str, ...], gone: Container[str]) -> tuple[str, ...]:
    return tuple(term for term in terms if term not in gone)


async def _embed(runtime: Runtime, text: str) -> tuple[bytes | None, tuple[str, ...]]:
    if not runtime.embedder.model or not text.strip():
        return None, ()
    try:
        async with asyncio.timeout(_EMBEDDING_S):
            vector = await runtime.embedder.query(beginning(text, _EMBEDDED_CHARACTERS))
    except (BackendUnavailable, TimeoutError):
        return None, ("the embedding model did not answer: found by words only",)
    return vector, ()


def _distinct(items: tuple[str, ...], limit: int) -> tuple[str, ...]:
    return tuple(dict.fromkeys(items))[:limit]
