"""Why a search ranked as it did: the type of the query and its reasons, weights, coverage, and each hit's features."""

from collections.abc import Sequence
from typing import Any

from api.retrieval.blending import lists_info
from api.retrieval.question import AnalyzedQuestion
from api.retrieval.reader import Reader
from api.retrieval.search import Candidate, SearchPlan, dense_weight
from pipeline.steps.rank_features import FEATURES, features
from pipeline.steps.rank_weights import weights


def explain_search(
    reader: Reader, question: AnalyzedQuestion, plan: SearchPlan, found: Sequence[Candidate]
) -> dict[str, Any]:
    """Return what `explain: true` adds. Features are those of the passages that the second stage saw."""
    alpha = dense_weight(reader, question, plan) if question.vector else 0.0
    explained: dict[str, Any] = {
        "terms": list(question.lexical.terms),
        "identifiers": list(question.identifiers),
        "named_by": {name: list(documents) for name, documents in reader.named.items()},
        "query_type": question.query_type,
        "reasons": list(question.reasons),
        "fusion": "relative" if plan.fusion == "auto" else plan.fusion,
        "dense_weight": alpha,
        "candidates": len(found),
        "further_lists": lists_info(reader.runtime.further),
    }
    reranker = reader.runtime.reranker
    if reader.explained is None or reranker is None:
        return explained
    asked, passages = reader.explained()
    table = features(asked, list(passages.values()))
    named = {
        chunk: dict(zip(FEATURES, map(float, row), strict=True)) for chunk, row in zip(passages, table, strict=True)
    }
    told = {"note": reranker.note} if reranker.note else {"weights": _weights(reader, question, plan)}
    explained["reranker"] = {"model": reranker.model, **told, "coverage": _coverage(named.values())}
    explained["features"] = {chunk: {name: round(v, 4) for name, v in row.items()} for chunk, row in named.items()}
    return explained


def _weights(reader: Reader, question: AnalyzedQuestion, plan: SearchPlan) -> dict[str, float]:
    """Return the weights of the product's own reranker; a model behind HTTP knows nothing of them."""
    given = weights(reader.runtime.ranking, question.query_type, plan.alpha)
    return {name: round(float(weight), 4) for name, weight in zip(FEATURES, given, strict=True) if weight}


def _coverage(rows: Any) -> float:
    """Return the share of the question's weight that the best passage by words holds."""
    best = max((row["bm25"] for row in rows), default=0.0)
    return round(max((row["coverage"] for row in rows if row["bm25"] == best), default=0.0), 4)
