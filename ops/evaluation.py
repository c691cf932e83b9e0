"""The demo's golden questions against a profile that holds the demo corpus: `make eval`.

`python -m ops.evaluation [--url URL | --data FOLDER] [--json]` prints, by kind of question, nDCG at 10 over the
grades, the share of documents of grade 2 and 3 among the first 10, and how often one of grade 3 stands first.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from ops.cli.exits import run_command
from ops.cli.show import print_json, print_table
from ops.connection import Connection, connect
from ops.demo_load import DEMO, manifest

CUT = 10
OVERFETCH = 50
"""Hits are passages; the first ten documents are wanted."""


class Golden(msgspec.Struct, frozen=True):
    """A question with its graded documents."""

    id: str
    question: str
    kind: str
    relevant: dict[str, int]


class Scores(msgspec.Struct, frozen=True):
    """How one question went."""

    ndcg: float
    recall: float
    first: float


def golden() -> list[Golden]:
    """Return the demo's questions."""
    lines = (DEMO / manifest()["golden"]).read_text(encoding="utf-8").splitlines()
    return [msgspec.json.decode(line, type=Golden) for line in lines]


def score(found: Sequence[str], relevant: Mapping[str, int]) -> Scores:
    """Compare a ranking of documents with the grades."""
    top = list(found[:CUT])
    best = _gain(sorted(relevant.values(), reverse=True)[:CUT])
    good = {document for document, grade in relevant.items() if grade >= 2}
    return Scores(
        ndcg=_gain([relevant.get(document, 0) for document in top]) / best if best else 0.0,
        recall=len(good & set(top)) / len(good) if good else 1.0,
        first=float(bool(top) and relevant.get(top[0], 0) == 3),
    )


def _gain(grades: Sequence[int]) -> float:
    return math.fsum(((1 << grade) - 1) / math.log2(rank + 2) for rank, grade in enumerate(grades))


async def evaluate(connection: Connection, questions: Sequence[Golden]) -> dict[str, dict[str, float]]:
    """Return the mean scores by kind of question, and over all."""
    scores: dict[str, list[Scores]] = defaultdict(list)
    for question in questions:
        body = {"query": question.question, "top_k": OVERFETCH}
        hits = (await connection.post("/v1/search", json=body))["hits"]
        found = list(dict.fromkeys(hit["document"]["key"] for hit in hits))
        for kind in (question.kind, "all"):
            scores[kind].append(score(found, question.relevant))
    return {kind: _mean(rows) for kind, rows in sorted(scores.items(), key=lambda item: item[0] == "all")}


def _mean(rows: Sequence[Scores]) -> dict[str, float]:
    names = ("ndcg", "recall", "first")
    means = {name: round(sum(getattr(row, name) for row in rows) / len(rows), 4) for name in names}
    return {"questions": len(rows)} | means


def main(
    url: Annotated[str | None, typer.Option("--url")] = None,
    data: Annotated[Path | None, typer.Option("--data")] = None,
    as_json: Annotated[bool, typer.Option("--json")] = False,
) -> None:
    """Print the table."""

    async def work() -> dict[str, Any]:
        async with connect(url=url, data=data) as connection:
            return await evaluate(connection, golden())

    found = run_command(work())
    if as_json:
        print_json(found)
        return
    columns = ("kind", "questions", "nDCG@10", "recall@10", "first")
    print_table(columns, [(kind, *scores.values()) for kind, scores in found.items()])


if __name__ == "__main__":
    typer.run(main)
