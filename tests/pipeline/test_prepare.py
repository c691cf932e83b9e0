"""What the preparer asks the models for, and when."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import cast

import pytest

from pipeline.backends.analyzer_stub import StubAnalyzer
from pipeline.backends.cache_sqlite import SqliteCache
from pipeline.errors import ModelFailed
from pipeline.prepare import Prepared, Preparer
from pipeline.settings import Settings
from pipeline.steps.chunk import ChunkLimits
from pipeline.wiring import Configuration, open_models
from schemas.change_event import Lane
from schemas.document import Analysis
from schemas.knowledge import Mention
from schemas.record import Record


class Meeting(StubAnalyzer):
    """Tokens and mentions of one batch meet: neither is answered before the other is asked for."""

    met: asyncio.Barrier | None = None
    asked = 0
    """Texts whose mentions were asked for."""

    async def tokens(self, texts: Sequence[str], *, lane: Lane = "live") -> list[Analysis]:
        await self._meet()
        return await super().tokens(texts, lane=lane)

    async def mentions(self, texts: Sequence[str], *, lane: Lane = "live") -> list[tuple[Mention, ...]]:
        await self._meet()
        self.asked += len(texts)
        return await super().mentions(texts, lane=lane)

    async def _meet(self) -> None:
        if self.met is not None:
            async with asyncio.timeout(10):
                await self.met.wait()


@pytest.fixture
async def preparer(tmp_path: Path) -> AsyncIterator[tuple[Preparer, Meeting]]:
    settings = Settings(data=tmp_path, analyzer="stub", embedder="none")
    configuration = Configuration(settings)
    cache = SqliteCache(tmp_path / "cache.db")
    async with open_models(settings, configuration.lexicon) as (_, embedder):
        analyzer = Meeting(configuration.identifiers)
        parts = configuration.mappings, configuration.vocabulary, cache, analyzer, embedder, ChunkLimits()
        yield Preparer(*parts), analyzer
    await cache.close()


def records(*bodies: str) -> list[Record]:
    return [
        Record(
            document=f"erp/reports/{n}", op="upsert", position="1", version="", occurred_at="", columns={"body": body}
        )
        for n, body in enumerate(bodies)
    ]


def concepts(prepared: Prepared) -> list[str]:
    return [m.surface for a in prepared.analyses for m in a.mentions if m.family == "concept"]


async def test_tokens_and_mentions_of_a_few_documents_are_made_side_by_side(
    preparer: tuple[Preparer, Meeting],
) -> None:
    stage, analyzer = preparer
    analyzer.met = asyncio.Barrier(2)
    done = cast(list[Prepared], await stage.analyzed(records("フォークリフトを点検した。"), "live", beside=8))
    assert [one.missing for one in done] == [False]
    assert concepts(done[0]) == ["フォークリフト"]


async def test_many_documents_wait_for_their_mentions_and_none_that_has_them_waits(
    preparer: tuple[Preparer, Meeting],
) -> None:
    stage, analyzer = preparer
    known, *others = records("フォークリフトを点検した。", "コンベアを止めた。", "ポンプの異音。")
    await stage.analyzed([known], "live", beside=1)
    analyzer.faults.calls = 0
    done = cast(list[Prepared], await stage.analyzed([known, *others], "live", beside=1))
    assert [one.missing for one in done] == [False, True, True]
    assert concepts(done[0]) == ["フォークリフト"]
    assert analyzer.faults.calls == 1, "tokens of the two others; mentions are looked for later"


async def test_a_model_that_fails_on_mentions_is_told(
    preparer: tuple[Preparer, Meeting],
) -> None:
    stage, analyzer = preparer
    analyzer.faults.fails_on = lambda text: "ポンプ" in text
    with pytest.raises(ModelFailed):
        await stage.analyzed(records("ポンプの異音。"), "live", beside=8)


async def test_what_was_made_of_a_long_document_is_kept_when_it_breaks_off(
    preparer: tuple[Preparer, Meeting],
) -> None:
    stage, analyzer = preparer
    long = records("\n\n".join(f"## 第{n}節\n\n設備{n}の記録。" for n in range(500)) + "\n\n## 終節\n\nポンプの異音。")
    (prepared,) = await stage.analyzed(long, "live", beside=0)
    assert isinstance(prepared, Prepared) and len(prepared.chunks) > 500
    analyzer.faults.fails_on = lambda text: "ポンプ" in text
    with pytest.raises(ModelFailed):
        await stage.mention([prepared], "live")
    analyzer.faults.fails_on, analyzer.asked = None, 0
    await stage.mention([prepared], "live")
    assert 0 < analyzer.asked < 200
