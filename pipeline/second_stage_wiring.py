"""The composition root of rerankers: the product's own, and those behind HTTP."""

from contextlib import AsyncExitStack

from pipeline.backends.model_server import ModelServer
from pipeline.backends.reranker_embedded import EmbeddedReranker
from pipeline.backends.reranker_http import HttpReranker, TeiReranker
from pipeline.backends.reranker_llm import LlmReranker
from pipeline.errors import InvalidConfiguration
from pipeline.further_wiring import further_lists
from pipeline.ports.cache import Cache
from pipeline.ports.reranker import Reranker
from pipeline.ports.runtime import Runtime
from pipeline.ranking import load_ranking
from pipeline.settings import Settings
from schemas.ranking_model import RankingModel


def join_models(runtime: Runtime, settings: Settings, cache: Cache, stack: AsyncExitStack) -> None:
    """Give a runtime its second stage, by its ranking, and its further lists, and close them with the stack."""
    runtime.reranker, runtime.rerank_budget_s = reranker_of(settings, runtime.ranking), settings.reranker_budget
    if runtime.reranker:
        stack.push_async_callback(runtime.reranker.close)
    runtime.further, runtime.further_budget_s = further_lists(settings, cache), settings.further_budget
    for one in runtime.further:
        stack.push_async_callback(one.scorer.close)


def reranker_of(settings: Settings, ranking: RankingModel | None = None) -> Reranker | None:
    """Return the reranker that the settings ask for. Raises InvalidConfiguration when it lacks address or model."""
    kind = settings.reranker
    if kind == "none":
        return None
    if kind == "embedded":
        return EmbeddedReranker(ranking or load_ranking(settings.ranking))
    if not settings.reranker_url or (kind != "tei" and not settings.reranker_model):
        raise InvalidConfiguration(
            f"SHINSEN_RERANKER={kind} needs SHINSEN_RERANKER_URL (http://host:8080)"
            + ("" if kind == "tei" else " and SHINSEN_RERANKER_MODEL")
        )
    server = ModelServer("reranker", settings.reranker_url, settings.reranker_key)
    if kind == "tei":
        return TeiReranker(server, settings.reranker_model)
    return (
        LlmReranker(server, settings.reranker_model) if kind == "llm" else HttpReranker(server, settings.reranker_model)
    )
