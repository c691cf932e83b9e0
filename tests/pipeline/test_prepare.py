"""What the preparer asks the models for, and when."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import cast

import pytest

from pipeline.backends.analyzer_stub import StubAnalyzer
from pipeline.backends.cache_sqlite import SqliteCache
from pipeline.backends.embedder_stub import StubEmbedder
from pipeline.errors import ModelFailed
from pipeline.prepare import Prepared, Preparer
from pipeline.settings import Settings
from pipeline.steps.chunk import ChunkLimits
from pipeline.steps.sentence_vectors import MOST_SENTENCES, packed
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


class Listing(StubEmbedder):
    """Notes what it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    async def passages(self, texts: Sequence[str], *, lane: Lane = "live") -> list[bytes]:
        self.texts += texts
        return await super().passages(texts, lane=lane)

    def given(self) -> list[str]:
        given, self.texts = self.texts, []
        return sorted(given)


async def embedded(
    folder: Path, embedder: Listing, body: str, *, sentences: bool = True, refined: bool = False
) -> Prepared:
    """Prepare one document whole, as the stack's last stage does; `refined`: after its sentences were seen to."""
    configuration = Configuration(Settings(data=folder, analyzer="stub", embedder="none"))
    cache = SqliteCache(folder / "cache.db")
    parts = configuration.mappings, configuration.vocabulary, cache, StubAnalyzer(configuration.identifiers)
    stage = Preparer(*parts, embedder, ChunkLimits(), sentences_at_once=2 * sentences)
    if refined:
        await stage.refine(records(body), "bulk")
    (prepared,) = cast(list[Prepared], await stage.analyzed(records(body), "live", beside=8))
    for one in await stage.with_cached_vectors([prepared]):
        await stage.embed([one], "live")
    await cache.close()
    return prepared


WHOLE, PARTS = "油温を測った。異音はない。フィルタを替えた。", ["油温を測った。", "異音はない。", "フィルタを替えた。"]


async def test_nothing_waits_for_the_vectors_of_sentences_and_an_edit_embeds_only_what_it_touches(
    tmp_path: Path,
) -> None:
    embedder = Listing()
    first = await embedded(tmp_path, embedder, WHOLE)
    (title,) = {text.rpartition("\n")[0] for text in embedder.texts}
    under = f"{title}\n" if title else ""
    assert embedder.given() == [under + WHOLE]
    assert (first.unrefined, first.sentence_vectors) == (True, [b""])
    first = await embedded(tmp_path, embedder, WHOLE, refined=True)
    assert embedder.given() == sorted(under + part for part in PARTS)
    vectors = [vector for part in PARTS for vector in await embedder.passages([under + part])]
    assert (first.unrefined, first.sentence_vectors) == (False, [b"".join(map(packed, vectors))])
    embedder.given()
    again = await embedded(tmp_path, embedder, WHOLE, refined=True)
    assert embedder.given() == [] and again.sentence_vectors == first.sentence_vectors
    edited = WHOLE.replace("ない", "する")
    assert (await embedded(tmp_path, embedder, edited)).unrefined
    changed = await embedded(tmp_path, embedder, edited, refined=True)
    assert embedder.given() == sorted(under + text for text in (edited, "異音はする。"))
    length = embedder.dimensions
    before, after = first.sentence_vectors[0], changed.sentence_vectors[0]
    assert before[:length] == after[:length] and before[2 * length :] == after[2 * length :]
    assert before != after


async def test_a_passage_of_one_sentence_is_embedded_once_and_none_is_taken_apart_where_nobody_wants_it(
    tmp_path: Path,
) -> None:
    embedder = Listing()
    one = await embedded(tmp_path, embedder, "油温を測った。", refined=True)
    assert len(embedder.given()) == 1 and one.sentence_vectors == [b""] and len(one.vectors) == 1
    assert one.unrefined is False
    two = await embedded(tmp_path, embedder, "油温を測った。異音はない。", sentences=False, refined=True)
    assert len(embedder.given()) == 1 and two.sentence_vectors == [] and len(two.vectors) == 1
    assert two.unrefined is None


async def test_of_a_passage_of_very_many_sentences_the_first_ones_have_vectors(tmp_path: Path) -> None:
    embedder = Listing()
    many = await embedded(tmp_path, embedder, "".join(f"点検{n}良し。" for n in range(40)), refined=True)
    assert len(many.chunks) == 1
    assert len(many.sentence_vectors[0]) == MOST_SENTENCES * embedder.dimensions
    assert len(embedder.given()) == 1 + MOST_SENTENCES
