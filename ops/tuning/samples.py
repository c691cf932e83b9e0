"""What weights are fitted on: candidates of golden questions with their features, as the search gives them."""

import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from ops.connection import Connection
from ops.evaluation.golden import GoldenQuestion
from ops.evaluation.loading import unrefined
from ops.tuning.fit import Sample, ideal
from pipeline.errors import NotPossible
from pipeline.steps.rank_features import FEATURES
from schemas.ranking_model import FittedOn

POOL = 50
"""Candidates that the second stage sees."""


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """A question as it lies in a file of samples: no text of any document."""

    group: str
    query_type: str
    features: list[list[float]]
    grades: list[int]
    documents: list[str]
    exact: list[int]
    ideal: float
    held: bool = False

    def sample(self) -> Sample:
        """Return it for fitting."""
        return Sample(
            group=self.group,
            query_type=self.query_type,
            features=np.array(self.features, np.float64).reshape(-1, len(FEATURES)),
            grades=np.array(self.grades, np.float64),
            documents=tuple(self.documents),
            exact=tuple(self.exact),
            best=self.ideal,
        )


class SampleSet(msgspec.Struct, frozen=True, kw_only=True):
    """The candidates of a golden set's questions."""

    told: FittedOn
    encoder: str
    analyzer: str
    features: tuple[str, ...]
    questions: list[Kept]


def some(questions: Sequence[GoldenQuestion], most: int, seed: int) -> list[GoldenQuestion]:
    """Return at most so many, the same for the same seed."""
    if not most or len(questions) <= most:
        return list(questions)
    chosen = np.random.default_rng(seed).permutation(len(questions))[:most]
    return [questions[n] for n in sorted(chosen)]


async def collect(connection: Connection, told: FittedOn, questions: Sequence[GoldenQuestion]) -> SampleSet:
    """Ask all questions, one after the other. Raises NotPossible while documents lack what weights are fitted on."""
    if lacking := await unrefined(connection):
        raise NotPossible(f"{lacking}: fit weights when `shinsen status` shows none")
    status = await connection.get("/v1/status")
    versions: dict[str, str] = next(g["versions"] for g in status["generations"] if g["state"] == "live")
    return SampleSet(
        told=told,
        encoder=versions.get("embedder", ""),
        analyzer=versions.get("analyzer", ""),
        features=FEATURES,
        questions=[await _asked(connection, one) for one in questions],
    )


async def _asked(connection: Connection, golden: GoldenQuestion) -> Kept:
    body = {"query": golden.question, "top_k": POOL, "explain": True}
    response = await connection.post("/v1/search", json=body)
    rows: dict[str, dict[str, float]] = response["explanation"].get("features", {})
    hits: dict[str, Any] = {hit["chunk_id"]: hit["document"] for hit in response["hits"]}
    exact = {
        hit["chunk_id"]: hit["parts"]["exact_identifier"] or hit["parts"]["named_identifier"]
        for hit in response["hits"]
    }
    chunks = [chunk for chunk in rows if chunk in hits]  # in the order of the first stage
    good = [hits[c]["title"] for c in chunks if golden.relevant.get(hits[c]["key"])]
    return Kept(
        group=hashlib.sha256((good[0] if good else golden.question).encode()).hexdigest()[:12],
        query_type=response["query_type"],
        features=[[rows[chunk].get(name, 0.0) for name in FEATURES] for chunk in chunks],
        grades=[golden.relevant.get(hits[chunk]["key"], 0) for chunk in chunks],
        documents=[hits[chunk]["key"] for chunk in chunks],
        exact=[int(exact[chunk]) for chunk in chunks],
        ideal=ideal(list(golden.relevant.values())),
        held=golden.split not in ("", "fit"),
    )
