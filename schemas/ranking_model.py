"""How a search is ranked: weights that `shinsen tune` fitted, and what they were fitted on."""

import msgspec


class FittedOn(msgspec.Struct, frozen=True, kw_only=True):
    """A golden set that took part."""

    name: str
    questions: int
    digest: str
    """Of questions and grades: eight hex digits."""


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """nDCG at 10 on a golden set, of questions that the weights had not seen."""

    name: str
    questions: int
    first_stage: float
    reranked: float


class RankingModel(msgspec.Struct, frozen=True, kw_only=True):
    """Weights of both stages. They belong to one encoder: another one's scores mean something else."""

    encoder: str = ""
    """Of the vectors that the dense scores come from; empty: none, and the dense weights count for any."""
    alphas: dict[str, float] = {}
    """First stage: weight of the dense list by type of query, 0 to 1."""
    weights: dict[str, float] = {}
    """Second stage: of each feature, 0 or more, so that a better feature never makes a passage worse."""
    by_type: dict[str, dict[str, float]] = {}
    """What a type of query adds to these."""
    fitted_at: str = ""
    fitted_with: str = ""
    """The command."""
    analyzer: str = ""
    fitted_on: tuple[FittedOn, ...] = ()
    held_out: tuple[Figures, ...] = ()
    """By cross-validation, a document's title never on both sides."""
    seed: int = 0
