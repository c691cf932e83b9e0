"""tune: fit the weights of the search on golden questions, through the product that runs."""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np
import typer

from ops.cli.exits import Exit, fail, run_command
from ops.cli.options import Collection, Data, Json, Source, Url, check_place
from ops.cli.show import OUT, print_json, print_table
from ops.connection import connect
from ops.evaluation.formats import Place, read_golden
from ops.tuning.samples import SampleSet, collect, some
from ops.tuning.tuning import Tuned, tune
from pipeline.errors import InvalidConfiguration
from pipeline.ranking import dump_ranking
from pipeline.steps.rank_features import FEATURES
from schemas.ranking_model import FittedOn

_RESAMPLES = 2_000


def tune_weights(
    golden: Annotated[list[Path] | None, typer.Argument(help="Golden sets, as `shinsen eval` takes them.")] = None,
    out: Annotated[Path, typer.Option("--out", help="Where to write the weights; name it in SHINSEN_RANKING.")] = Path(
        "ranking.yaml"
    ),
    also: Annotated[
        list[Path] | None, typer.Option("--with", help="Samples that --keep wrote, of another corpus.")
    ] = None,
    keep: Annotated[
        Path | None, typer.Option("--keep", help="Only collect samples, into this file: features and grades, no texts.")
    ] = None,
    most: Annotated[int, typer.Option("--most", help="At most so many questions of a set; 0: all.", min=0)] = 0,
    seed: Annotated[int, typer.Option("--seed", help="Of the folds and of --most.")] = 1,
    source: Source = "eval",
    collection: Collection = "passages",
    url: Url = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Fit weights of both stages on golden sets; print nDCG@10 before and after on questions they have not seen.

    Each set counts alike. Weights belong to the encoder that runs.
    """
    check_place(url, data)

    sets = run_command(_collected(golden, Place(source, collection), most, seed, url, data)) if golden else []
    if keep is not None:
        keep.write_bytes(msgspec.json.encode(sets))
        OUT.print(f"{sum(len(one.questions) for one in sets)} questions kept in {keep}", markup=False)
        return
    sets += [one for path in also or [] for one in _kept(path)]
    if not any(any(kept.grades) for one in sets for kept in one.questions):
        fail("no golden question has a good document among its candidates: is the set's corpus loaded?", Exit.USAGE)
    tuned = _tuned(sets, seed, out)
    if as_json:
        print_json(msgspec.to_builtins(tuned.ranking))
    else:
        _print(tuned, out, seed)


def _tuned(sets: Sequence[SampleSet], seed: int, out: Path) -> Tuned:
    """Fit, and write the file."""
    try:
        tuned = tune(sets, shlex.join(["shinsen", *sys.argv[1:]]), seed)
        out.write_text(dump_ranking(tuned.ranking), encoding="utf-8")
    except InvalidConfiguration as error:
        fail(str(error), Exit.USAGE)
    except OSError as error:
        fail(f"{out} cannot be written: {error.strerror}", Exit.USAGE)
    return tuned


async def _collected(
    paths: Sequence[Path], place: Place, most: int, seed: int, url: str | None, data: Path | None
) -> list[SampleSet]:
    given = [(path, read_golden(path, place)) for path in paths]
    async with connect(url=url, data=data) as connection:
        return [
            await collect(
                connection,
                FittedOn(name=path.stem, questions=len(asked), digest=golden.fingerprint()[:8]),
                asked,
            )
            for path, golden in given
            for asked in [some(golden.questions, most, seed)]
        ]


def _kept(path: Path) -> list[SampleSet]:
    try:
        sets = msgspec.json.decode(path.read_bytes(), type=list[SampleSet])
    except (OSError, msgspec.DecodeError) as error:
        fail(f"{path}: no samples ({error}); `shinsen tune --keep` writes them", Exit.USAGE)
    if any(one.features != FEATURES for one in sets):
        fail(f"{path}: samples of other features; collect them again with `shinsen tune --keep`", Exit.USAGE)
    return sets


def _print(tuned: Tuned, out: Path, seed: int) -> None:
    rows = []
    for one in tuned.ranking.held_out:
        before, after = np.array(tuned.before[one.name]), np.array(tuned.after[one.name])
        low, high = _interval(after - before, seed)
        rows.append((one.name, one.questions, one.first_stage, one.reranked, f"{low:+.4f} to {high:+.4f}"))
    title = "nDCG@10 of the candidates, by cross-validation over titles"
    print_table(("set", "questions", "first stage", "with the new weights", "difference, 95 %"), rows, title=title)
    OUT.print(f"{out} written; use it with SHINSEN_RANKING={out}", markup=False)


def _interval(differences: "np.typing.NDArray[np.float64]", seed: int) -> tuple[float, float]:
    """Return the middle 95 % of the mean over resampled questions (paired bootstrap, Efron and Tibshirani 1993)."""
    chance = np.random.default_rng(seed)
    means = differences[chance.integers(0, len(differences), (_RESAMPLES, len(differences)))].mean(axis=1)
    low, high = np.quantile(means, (0.025, 0.975))
    return float(low), float(high)
