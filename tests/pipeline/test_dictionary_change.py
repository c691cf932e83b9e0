"""A changed dictionary: at the next start only the documents that hold the changed words are analyzed again."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
import structlog

from pipeline.backends.chunks_sqlite import SqliteChunks
from pipeline.dictionary_change import documents_holding, outdated_parts
from pipeline.embedded.runtime import EmbeddedRuntime
from pipeline.settings import Settings
from pipeline.wiring import open_embedded
from schemas.change_event import RawEvent
from tests.contracts.chunk_examples import chunk

BODIES = {
    "one": ("点検記録", "ガレリア号の軸受を点検した。"),
    "two": ("清掃記録", "倉庫の床を清掃した。"),
    "three": ("ガレリア号の図面", "寸法を記す。"),
}


def settings(folder: Path, *words: str, header: str = "word") -> Settings:
    path = folder / "words.csv"
    path.write_text("\n".join([header, *words]) + "\n", encoding="utf-8")
    given: dict[str, Any] = {"data": folder / "data", "analyzer": "ginza", "embedder": "none", "workers": 1}
    return Settings.model_validate({**given, "dictionary": path} if words else given)


async def terms(runtime: EmbeddedRuntime) -> dict[str, tuple[str, ...]]:
    await runtime.quiet(120)
    async with runtime.live() as indexes:
        return {c.document.rsplit("/", 1)[-1]: c.analysis.terms + c.title_terms async for c in indexes.chunks.scan()}


async def load(runtime: EmbeddedRuntime) -> None:
    for key, (title, body) in BODIES.items():
        record = f'{{"title": "{title}", "body": "{body}"}}'
        event = (
            f'{{"source": "s", "collection": "c", "key": "{key}", "op": "upsert", "position": 1, "record": {record}}}'
        )
        await runtime.submit([RawEvent(value=event.encode())])


def said(logs: list[Any]) -> list[dict[str, Any]]:
    return [entry for entry in logs if entry["event"] in ("dictionary_changed", "indexes_outdated")]


@pytest.mark.models
async def test_only_the_holders_of_changed_words_are_done_again(tmp_path: Path) -> None:
    async with open_embedded(settings(tmp_path)) as runtime:
        await load(runtime)
        before = await terms(runtime)
        digest = await runtime.digest()
    assert "ガレリア号" not in before["one"]

    with structlog.testing.capture_logs() as logs:
        async with open_embedded(settings(tmp_path, "ガレリア号", "無い言葉")) as runtime:
            after = await terms(runtime)
            assert runtime.outdated == []
    assert [(e["event"], e["words"], e["documents"]) for e in said(logs)] == [("dictionary_changed", 2, 2)]
    assert "ガレリア号" in after["one"] and "ガレリア号" in after["three"]
    assert after["two"] == before["two"]

    with structlog.testing.capture_logs() as logs:
        async with open_embedded(settings(tmp_path, "ガレリア号", "無い言葉")) as runtime:
            assert runtime.recovered == 0 and await terms(runtime) == after
    assert said(logs) == []

    async with open_embedded(settings(tmp_path)) as runtime:  # taken away again
        assert await terms(runtime) == before
        assert await runtime.digest() == digest


@pytest.mark.models
async def test_codes_are_words_of_the_dictionary_too(tmp_path: Path) -> None:
    async with open_embedded(settings(tmp_path)) as runtime:
        await load(runtime)
        before = await terms(runtime)
        digest = await runtime.digest()

    changed = settings(tmp_path, "ガレリア号,code", header="word,kind")
    with structlog.testing.capture_logs() as logs:
        async with open_embedded(changed) as runtime:
            after = await terms(runtime)
            assert runtime.outdated == []
            async with runtime.live() as indexes:
                found = {c.document.rsplit("/", 1)[-1]: c.analysis.identifiers async for c in indexes.chunks.scan()}
    assert [(e["event"], e["words"], e["documents"]) for e in said(logs)] == [("dictionary_changed", 1, 2)]
    assert found["one"] == ("ガレリア号",) and after["two"] == before["two"]

    async with open_embedded(settings(tmp_path)) as runtime:  # taken away again
        assert await terms(runtime) == before
        assert await runtime.digest() == digest


@pytest.mark.models
async def test_an_unknown_dictionary_asks_for_a_replay(tmp_path: Path) -> None:
    async with open_embedded(settings(tmp_path, "ガレリア号")) as runtime:
        await load(runtime)
        await runtime.quiet(120)
    await asyncio.to_thread((tmp_path / "data" / "cache.db").unlink)
    async with open_embedded(settings(tmp_path, "別の言葉")) as runtime:
        assert runtime.outdated == ["dictionary"]


def test_outdated_parts() -> None:
    assert outdated_parts({"analyzer": "1"}, {"analyzer": "1", "dictionary": ""}) == []
    assert outdated_parts({"analyzer": "1", "dictionary": "a"}, {"analyzer": "2"}) == ["analyzer", "dictionary"]


class _Titles:
    """A state store with no manifests."""

    async def scan_manifests(self, generation: str) -> Any:
        nothing: list[Any] = []
        for manifest in nothing:
            yield manifest


async def test_holders_are_found_however_the_word_is_written(tmp_path: Path) -> None:
    from pipeline.text.normalize import fold, matching_form
    from pipeline.text.terms import bigrams

    index = SqliteChunks(tmp_path, "g1")
    written = ["ヴァイオリンサーバーを直す", "ﾊﾞｲｵﾘﾝｻｰﾊﾞを直す", "バイオリンとサーバを直す"]
    await index.stage(
        [
            chunk(f"c{n}", document=f"d{n}", bigrams=bigrams(matching_form(fold(text)[0])))
            for n, text in enumerate(written)
        ]
    )
    found = await documents_holding(["バイオリンサーバ"], _Titles(), index, "g1")  # type: ignore[arg-type]
    assert found == ["d0", "d1"]
    await index.close()
