"""Runs a golden set under each configuration: the running profile, indexes of their own, engines outside."""

import hashlib
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from ops.connection import ApiProblem, Connection, connect, connect_here
from ops.evaluation.configurations import Configuration
from ops.evaluation.engines import engine
from ops.evaluation.formats import Place
from ops.evaluation.golden import GoldenSet
from ops.evaluation.loading import check_relevant, load, not_there, unrefined
from ops.evaluation.ranking import AT_ONCE, TOP_K, Ranker, Ranking, SearchRanker, rank_all
from ops.profile import read_settings
from pipeline.errors import InvalidConfiguration

SHARED_CACHE = "cache.db"
Tell = Callable[[str, int, int], object]
"""Told a configuration's name, how many questions it has answered, and of how many."""


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked, and how."""

    url: str | None = None
    data: Path | None = None
    groups: str | None = None
    place: Place = Place()
    load: bool = False
    """Publish the set's corpus into the running profile first."""
    written_at: str = ""
    """The time of its events."""
    load_timeout_s: float = 3600.0
    folder: Path = Path(".shinsen-eval")
    """Holds a data folder for each configuration with settings of its own."""
    top_k: int = TOP_K
    at_once: int = AT_ONCE


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """What a configuration answered."""

    configuration: Configuration
    rankings: list[Ranking]
    """In the order of the questions."""
    seconds: float
    """All questions, `at_once` at a time."""
    profile: dict[str, str] = {}
    """Versions of models and analysis that the profile was built with; empty for engines."""


class Outcome(msgspec.Struct, frozen=True):
    """All runs, in the order of the configurations, and what was loaded."""

    runs: list[Run]
    notes: tuple[str, ...] = ()


async def run_all(
    golden: GoldenSet, configurations: Sequence[Configuration], target: Target, tell: Tell = lambda *_: None
) -> Outcome:
    """Run every configuration over the same questions. Raises ShinsenError: what cannot be reached, read, loaded."""
    runs: dict[str, Run] = {}
    notes: list[str] = []
    plain = [c for c in configurations if not c.own_index and not c.engine]
    if plain or target.load:
        async with connect(url=target.url, data=target.data, create=target.load) as connection:
            notes += await _prepare(connection, golden, target)
            for configuration in plain:
                runs[configuration.name] = await _searched(connection, golden, configuration, target, tell)
            found = {key for run in runs.values() for ranking in run.rankings for key in ranking.documents}
            graded = {key: None for question in golden.questions for key, grade in question.relevant.items() if grade}
            if runs and (
                away := await not_there(connection, [key for key in graded if key not in found], target.groups)
            ):
                notes.append(away)
    for configuration in configurations:
        if configuration.engine:
            async with engine(configuration, golden, target.place) as ranker:
                runs[configuration.name] = await _run(ranker, golden, configuration, target, tell)
        elif configuration.own_index:
            async with _own_index(configuration, golden, target) as connection:
                runs[configuration.name] = await _searched(connection, golden, configuration, target, tell)
    return Outcome([runs[configuration.name] for configuration in configurations], tuple(notes))


async def _prepare(connection: Connection, golden: GoldenSet, target: Target) -> list[str]:
    notes = []
    if target.load:
        notes.append(await load(connection, golden.passages, target.place, target.written_at, target.load_timeout_s))
    else:
        await check_relevant(connection, [key for question in golden.questions[:1] for key in question.relevant])
        if lacking := await unrefined(connection):
            notes.append(lacking)
    if changed := await _outdated(connection):
        notes.append(f"the indexes were built with another {', '.join(changed)} than runs now: `shinsen replay` first")
    return notes


@asynccontextmanager
async def _own_index(configuration: Configuration, golden: GoldenSet, target: Target) -> AsyncIterator[Connection]:
    """Open a data folder of the configuration's own, with the corpus in it.

    Vectors and mentions come from one cache: that of the data folder that is compared with, when there is one, so
    that no text is embedded twice by one model.
    """
    if not golden.passages:
        raise InvalidConfiguration(
            f"{configuration.name}: settings need an index of their own, and so a corpus (--corpus)"
        )
    folder = target.folder.resolve()
    compared = None if target.url else read_settings(data=target.data).data.resolve() / SHARED_CACHE
    cache = compared if compared and compared.exists() else folder / SHARED_CACHE
    cache.parent.mkdir(parents=True, exist_ok=True)
    settings = read_settings(
        data=folder / _folder_name(configuration, golden, target.place), cache=cache, **configuration.settings
    )
    async with connect_here(settings) as connection:
        await load(connection, golden.passages, target.place, target.written_at, target.load_timeout_s)
        if await _outdated(connection):  # the folder is from an earlier evaluation
            await connection.request("POST", "/v1/replay", endless=True)
        yield connection


def _folder_name(configuration: Configuration, golden: GoldenSet, place: Place) -> str:
    """Equal settings over the same passages share an index, whatever they are called."""
    content = hashlib.sha256(msgspec.json.encode([place, golden.passages]))
    content.update(msgspec.json.encode(configuration.settings, enc_hook=str, order="deterministic"))
    return content.hexdigest()[:16]


async def _outdated(connection: Connection) -> list[str]:
    """Return what the live indexes were built with in another version than runs now."""
    return list((await connection.get("/v1/status")).get("outdated", ()))


async def _searched(
    connection: Connection, golden: GoldenSet, configuration: Configuration, target: Target, tell: Tell
) -> Run:
    run = await _run(
        SearchRanker(connection, configuration.search, target.top_k, target.groups), golden, configuration, target, tell
    )
    return msgspec.structs.replace(run, profile=await _versions(connection))


async def _run(ranker: Ranker, golden: GoldenSet, configuration: Configuration, target: Target, tell: Tell) -> Run:
    done, total = 0, len(golden.questions)

    def step() -> None:
        nonlocal done
        done += 1
        tell(configuration.name, done, total)

    tell(configuration.name, 0, total)
    started = time.perf_counter()
    rankings = await rank_all(ranker, golden.questions, at_once=target.at_once, progress=step)
    return Run(configuration=configuration, rankings=rankings, seconds=time.perf_counter() - started)


async def _versions(connection: Connection) -> dict[str, str]:
    """Return what the live generation was built with; only an operator may see it."""
    try:
        found: list[dict[str, Any]] = (await connection.get("/v1/generations"))["generations"]
    except ApiProblem as problem:
        if problem.status == 403:
            return {}
        raise
    return next((g["versions"] for g in found if g["state"] == "live"), {})
