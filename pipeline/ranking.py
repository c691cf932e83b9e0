"""Reading the weights of a search, and what holds where they do not fit the encoder."""

from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec
import structlog
import yaml

from pipeline.errors import InvalidConfiguration
from pipeline.steps.rank_features import DENSE, FEATURES
from schemas.ranking_model import RankingModel

log = structlog.get_logger(__name__)

PLAIN_ALPHA = 0.3
"""The dense weight for an encoder that nothing was fitted with: the best single one of a study over another encoder."""


def load_ranking(path: Path | None = None) -> RankingModel:
    """Return the weights of a file that `shinsen tune` wrote; without one, the product's own.

    Raises InvalidConfiguration for a file that cannot be read, and for weights that cannot be.
    """
    file = path or files("schemas").joinpath("ranking/default.yaml")
    try:
        found = msgspec.convert(yaml.safe_load(file.read_text("utf-8")), RankingModel)
    except (OSError, UnicodeDecodeError, yaml.YAMLError, msgspec.ValidationError) as error:
        raise InvalidConfiguration(f"{file}: no weights of a search ({error}); `shinsen tune` writes them") from error
    if wrong := _wrong(found):
        raise InvalidConfiguration(f"{file}: {wrong}; write it anew with `shinsen tune`")
    return found


def dump_ranking(ranking: RankingModel) -> str:
    """Return the file's text."""
    told = "# Written by `shinsen tune`; not by hand. The weights belong to the encoder that is named.\n"
    plain: dict[str, Any] = msgspec.to_builtins(ranking)
    return told + str(yaml.safe_dump(plain, allow_unicode=True, sort_keys=False, width=120))


def ranking_for(ranking: RankingModel, encoder: str) -> RankingModel:
    """Return the weights for this encoder; where they were fitted with another, plain ones for the dense list."""
    if not encoder or not ranking.encoder or _family(encoder) == _family(ranking.encoder):
        return ranking
    log.info(
        "ranking_of_another_encoder",
        fitted_with=ranking.encoder,
        runs=encoder,
        advice="dense scores count with a plain weight; fit with `shinsen tune` and set SHINSEN_RANKING",
    )
    return plain_dense(ranking)


def plain_dense(ranking: RankingModel) -> RankingModel:
    """Return the same words' weights, and one dense weight for all types."""
    words = {name: weight for name, weight in ranking.weights.items() if name not in DENSE}
    dense = PLAIN_ALPHA / (1 - PLAIN_ALPHA) * (sum(words.values()) or 1.0)
    return msgspec.structs.replace(
        ranking, alphas=dict.fromkeys(ranking.alphas, PLAIN_ALPHA), weights={**words, "dense": dense}, by_type={}
    )


def _family(encoder: str) -> str:
    """The model without the version of what runs it."""
    return encoder.split("/", 1)[0]


def _wrong(ranking: RankingModel) -> str:
    named = [ranking.weights, *ranking.by_type.values()]
    if unknown := sorted({name for weights in named for name in weights} - set(FEATURES)):
        return f"unknown features: {', '.join(unknown)}"
    if not all(0 <= weight < 1e6 for weights in named for weight in weights.values()):
        return "a weight of a feature is below 0 or no number"
    if not all(0 <= alpha <= 1 for alpha in ranking.alphas.values()):
        return "a dense weight is not between 0 and 1"
    return "" if sum(ranking.weights.values()) > 0 else "all weights are 0"
