"""The composition root of further lists: encoders behind HTTP with a cache of what they encoded."""

from pipeline.backends.encoders_http import MOST_BYTES, JinaMultiVectorEncoder, TeiSparseEncoder
from pipeline.backends.model_server import ModelServer
from pipeline.errors import InvalidConfiguration
from pipeline.further_lists import LateScorer, SparseScorer
from pipeline.ports.cache import Cache
from pipeline.ports.further_list import FurtherList, Scorer
from pipeline.settings import Settings


def further_lists(settings: Settings, cache: Cache) -> tuple[FurtherList, ...]:
    """Return the lists that have a weight. Raises InvalidConfiguration when one lacks address or model."""
    made = {"sparse": _sparse, "late": _late}
    weights = check_further(settings)
    return tuple(
        FurtherList(name=name, weight=weight, scorer=made[name](settings, cache)) for name, weight in weights.items()
    )


def check_further(settings: Settings) -> dict[str, float]:
    """Return the weights above 0 by the lists' names; raises as `further_lists` does for what is missing."""
    weights = {"sparse": settings.sparse_weight, "late": settings.late_weight}
    if settings.sparse_weight:
        _check("SPARSE", settings.sparse_url, settings.sparse_model)
    if settings.late_weight:
        _check("LATE", settings.late_url, settings.late_model)
    if sum(weights.values()) > 1:
        raise InvalidConfiguration("SHINSEN_SPARSE_WEIGHT and SHINSEN_LATE_WEIGHT are more than 1 together")
    return {name: weight for name, weight in weights.items() if weight}


def _sparse(settings: Settings, cache: Cache) -> Scorer:
    server = ModelServer("sparse encoder", settings.sparse_url, settings.sparse_key, most_bytes=MOST_BYTES)
    return SparseScorer(TeiSparseEncoder(server, settings.sparse_model), cache)


def _late(settings: Settings, cache: Cache) -> Scorer:
    server = ModelServer("multi-vector encoder", settings.late_url, settings.late_key, most_bytes=MOST_BYTES)
    return LateScorer(JinaMultiVectorEncoder(server, settings.late_model, settings.late_dimensions), cache)


def _check(name: str, url: str, model: str) -> None:
    if not url or not model:
        raise InvalidConfiguration(
            f"SHINSEN_{name}_WEIGHT needs SHINSEN_{name}_URL (http://host:8080) and SHINSEN_{name}_MODEL, under which"
            " encodings are cached: another model is another name"
        )
