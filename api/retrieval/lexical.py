"""Finding by words: those that were typed, synonyms for less, and where little is found pieces of unknown words."""

from collections import defaultdict
from collections.abc import Sequence, Set

import msgspec

from api.retrieval.beside import beside
from api.retrieval.question import AnalyzedQuestion
from pipeline.ports.chunk_index import ChunkFilter, ChunkIndex, IndexHit, LexicalQuery
from pipeline.text.normalize import fold, matching_form
from pipeline.text.terms import bigrams

FEW = 5
"""Fewer hits than this are helped out by pieces of words."""
CODE_WEIGHT = 0.1
"""Of an identifier beside words: chunks that hold it come first anyway, and among those the words are to decide."""
_READ = 50
"""Chunks looked into for a whole word."""


async def find_words(chunks: ChunkIndex, question: AnalyzedQuestion, where: ChunkFilter, limit: int) -> list[IndexHit]:
    """Return the best by words, best first; behind them, when they are few, texts that hold a word nobody knows."""
    synonyms = _by_weight(question)
    typed, codes, *found = await _all(chunks, [question.lexical, question.codes, *synonyms.values()], where, limit)
    if codes and max(len(typed), len(codes)) >= limit:  # chunks that hold both may be below a cut
        within = msgspec.structs.replace(where, identifiers=question.identifiers)
        (among,) = await _all(chunks, [question.lexical], within, limit)
        typed = joined(typed, among)
        codes = joined(codes, [IndexHit(hit.id, hit.document, codes[-1].score) for hit in among])
    further = [(CODE_WEIGHT, codes), *zip(synonyms, found, strict=True)]
    words = _added(typed, further, limit, frozenset(hit.id for hit in codes))
    if len(words) >= FEW or not question.form.runs:
        return words
    known = {hit.id for hit in words}
    pieces = [hit for hit in await _pieces(chunks, question, where, limit) if hit.id not in known]
    if not pieces:
        return words
    scale = (words[-1].score if words else 1.0) / (2 * pieces[0].score or 1.0)
    return [*words, *(IndexHit(hit.id, hit.document, hit.score * scale) for hit in pieces)][:limit]


def joined(hits: Sequence[IndexHit], more: Sequence[IndexHit]) -> list[IndexHit]:
    """Return the hits, and behind them those of `more` that are not among them."""
    known = {hit.id for hit in hits}
    return [*hits, *(hit for hit in more if hit.id not in known)]


async def _all(
    chunks: ChunkIndex, queries: Sequence[LexicalQuery], where: ChunkFilter, limit: int
) -> list[list[IndexHit]]:
    """Return what each query finds; they are asked at once, and empty ones not at all. A task costs, too."""
    asked = [query for query in queries if query.terms or query.identifiers]
    answers = iter(await beside(*(chunks.lexical(query, where, limit) for query in asked)) if asked else ())
    return [next(answers) if query.terms or query.identifiers else [] for query in queries]


def _by_weight(question: AnalyzedQuestion) -> dict[float, LexicalQuery]:
    """Return one query for all synonyms of a weight."""
    by_weight: dict[float, list[str]] = defaultdict(list)
    for term, weight in question.form.synonyms:
        by_weight[weight].append(term)
    return {weight: LexicalQuery(tuple(terms)) for weight, terms in by_weight.items()}


def _added(
    typed: Sequence[IndexHit], further: Sequence[tuple[float, Sequence[IndexHit]]], limit: int, kept: Set[str]
) -> list[IndexHit]:
    """Add what synonyms give to what the typed words give; ties by id. Those in `kept` are not cut off."""
    if not any(hits for _, hits in further):
        return list(typed)[:limit]
    scores = {hit.id: hit.score for hit in typed}
    documents = {hit.id: hit.document for hit in typed}
    for weight, hits in further:
        for hit in hits:
            scores[hit.id] = scores.get(hit.id, 0.0) + weight * hit.score
            documents[hit.id] = hit.document
    best = sorted(scores, key=lambda chunk: (-scores[chunk], chunk))
    chosen = [chunk for n, chunk in enumerate(best) if n < limit or chunk in kept]
    return [IndexHit(chunk, documents[chunk], scores[chunk]) for chunk in chosen]


async def _pieces(chunks: ChunkIndex, question: AnalyzedQuestion, where: ChunkFilter, limit: int) -> list[IndexHit]:
    """Return texts that hold all pieces of one of the unknown words: サー alone does not make a サーベイ a サーバ."""
    hits = (await chunks.lexical(question.pieces, where, limit))[:_READ]
    texts = await chunks.texts([hit.id for hit in hits])
    runs = [set(run) for run in question.form.runs]

    def holds(chunk: str) -> bool:
        if chunk not in texts:
            return False
        there = set(bigrams(matching_form(fold(texts[chunk].text)[0])))
        return any(run <= there for run in runs)

    return [hit for hit in hits if holds(hit.id)]
