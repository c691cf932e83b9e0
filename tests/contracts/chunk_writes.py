"""Staging, collecting, reading back."""

import asyncio
from typing import Any

import msgspec
import pytest

from pipeline.ports.chunk_index import ChunkFilter, ChunkIndex
from schemas.document import Analysis, IndexedChunk
from schemas.knowledge import Mention
from tests.contracts.chunk_examples import ALL, DIMENSIONS, MODEL, chunk, unit, words
from tests.contracts.chunk_fixtures import ChunkFixtures, OpenIndex


async def scanned(index: ChunkIndex) -> list[IndexedChunk]:
    return [one async for one in index.scan()]


async def found(index: ChunkIndex, *terms: str) -> set[str]:
    return {hit.id for hit in await index.lexical(words(*terms), ALL, 100)}


FULL = chunk(
    "c1",
    "荷重",
    "f-17",
    bigrams=("荷重", "重計"),
    identifiers=("f-17",),
    title_terms=("点検", "記録"),
    vector=unit(1, 2, 3),
    sentence_vectors=bytes(range(3 * DIMENSIONS)),
    analysis=Analysis(
        terms=("荷重", "f-17"),
        bigrams=("荷重", "重計"),
        identifiers=("f-17",),
        mentions=(
            Mention(0, 4, "F-17", "id", "f-17", "identifier", 0.95),
            Mention(5, 7, "荷重", "concept", "荷重", "ner", 0.5),
        ),
    ),
    fields={
        "equipment_no": "K-08",
        "pages": 3,
        "hours": 1.5,
        "urgent": True,
        "tags": ["安全", "月次"],
        "day": "2025-07-08",
    },
    headings=("第一章", "㈱ 𠮟る 😀"),
)


class ChunkWrites(ChunkFixtures):
    async def test_a_chunk_comes_back_as_it_was_staged(self, index: ChunkIndex) -> None:
        bare = chunk("c2", "ただの文")
        await index.stage([FULL, bare])
        assert await index.get(["c1", "c2"]) == {"c1": FULL, "c2": bare}
        without = msgspec.structs.replace(FULL, vector=None, vector_model="", sentence_vectors=b"")
        assert await index.get(["c1"], vectors=False) == {"c1": without}
        assert await scanned(index) == [FULL, bare]

    async def test_what_a_search_reads_is_what_was_staged(self, index: ChunkIndex) -> None:
        other = chunk("c2", "検知", bigrams=("検知", "a検", "検a", "ab", "12"), text="", headings=())
        await index.stage([FULL, other, chunk("c3")])
        texts = await index.texts(["c1", "c2", "c1", "c9"])
        assert {key: (one.text, one.headings, one.terms, one.title_terms) for key, one in texts.items()} == {
            one.id: (one.text, one.headings, one.analysis.terms, one.title_terms) for one in (FULL, other)
        }
        asked = ("荷重", "重計", "計荷", "検知", "知a", "a検", "検a", "ab", "ba", "12", "21")
        held = {key: [pair for pair in asked if pair in one.bigrams] for key, one in texts.items()}
        assert held == {"c1": ["荷重", "重計"], "c2": ["検知", "a検", "検a", "ab", "12"]}
        assert [tuple(texts[one.id].bigrams) for one in (FULL, other)] == [
            FULL.analysis.bigrams,
            other.analysis.bigrams,
        ]
        assert [texts[one.id].sentence_vectors for one in (FULL, other)] == [FULL.sentence_vectors, b""]
        assert await index.texts([]) == {}

    async def test_vectors_of_sentences_come_and_go_with_the_vector(self, index: ChunkIndex) -> None:
        async def kept(**changed: Any) -> bytes:
            await index.stage([msgspec.structs.replace(FULL, **changed)])
            (one,), (text,) = [(await read(["c1"])).values() for read in (index.get, index.texts)]
            assert one.sentence_vectors == text.sentence_vectors
            return one.sentence_vectors

        assert await kept() == FULL.sentence_vectors
        assert await kept(sentence_vectors=b"\x80\x00\x7f\x01" * 2) == b"\x80\x00\x7f\x01" * 2
        assert await kept(sentence_vectors=b"") == b""
        assert await kept() == FULL.sentence_vectors
        assert await kept(vector=None, sentence_vectors=b"") == FULL.sentence_vectors, "the model is the same"
        assert await kept(vector=None, sentence_vectors=b"", vector_model="other") == b""
        assert await kept() == FULL.sentence_vectors
        await index.collect({FULL.document: ()}, 1)
        await index.stage([msgspec.structs.replace(FULL, vector=None, vector_model="", sentence_vectors=b"")])
        assert (await index.texts(["c1"]))["c1"].sentence_vectors == b""

    async def test_missing_ids_are_absent(self, index: ChunkIndex) -> None:
        await index.stage([chunk("c1")])
        assert set(await index.get(["c1", "c9"])) == {"c1"}
        assert await index.get([]) == {}

    async def test_ids_that_no_chunk_has_are_told(self, index: ChunkIndex) -> None:
        ids = [f"c{n:04}" for n in range(1_300)]
        assert await index.missing(ids) == set(ids)
        await index.stage([chunk(name) for name in ids if name not in ("c0007", "c1207")])
        assert await index.missing([*ids, *ids, "C0001", "1", "鍵"]) == {"c0007", "c1207", "C0001", "1", "鍵"}
        assert await index.missing([]) == set()
        await index.collect({"cmms/work_orders/1-1": tuple(ids[1:])}, 1)
        assert await index.missing(ids) == {"c0000", "c0007", "c1207"}

    async def test_documents_that_have_a_chunk_are_told(self, index: ChunkIndex) -> None:
        keys = [f"s/c/{n}" for n in range(1_100)]
        held = {"s/c/1", "s/c/1-1", "s/c/1099", "s/c/"}
        await index.stage([chunk(f"{key}:{n}", document=key) for key in held for n in range(2)])
        await index.stage([chunk(f"many:{n}", document="s/c/2") for n in range(1_200)])
        assert await index.held(keys) == {"s/c/1", "s/c/1099", "s/c/2"}
        assert await index.held(["s/c/1", "s/c/1", "s/c/1-1"]) == {"s/c/1", "s/c/1-1"}
        assert await index.held([]) == set()
        await index.collect({"s/c/2": (), "s/c/1": ("s/c/1:0",)}, 1)
        assert await index.held(["s/c/1", "s/c/2"]) == {"s/c/1"}

    async def test_an_empty_index(self, index: ChunkIndex) -> None:
        assert await index.count() == 0
        assert await scanned(index) == []
        assert await index.dense(unit(1), ALL, 10) == []
        assert await found(index, "荷重") == set()
        await index.stage([])
        assert await index.count() == 0

    async def test_staging_again_changes_nothing(self, index: ChunkIndex) -> None:
        await index.stage([FULL])
        await index.stage([FULL])
        assert await scanned(index) == [FULL]
        assert await index.count() == 1

    async def test_staging_overwrites_by_id(self, index: ChunkIndex) -> None:
        await index.stage([chunk("c1", "古い", vector=unit(1), fields={"a": "1"})])
        new = chunk("c1", "新しい", vector=unit(0, 1), fields={"a": "2"}, access_class="class-b", type="Memo")
        await index.stage([new])
        assert await index.get(["c1"]) == {"c1": new}
        assert (await found(index, "古い"), await found(index, "新しい")) == (set(), {"c1"})
        assert (await index.dense(unit(0, 1), ChunkFilter(access_classes=("class-b",)), 1))[0].score == pytest.approx(1)
        assert await index.dense(unit(0, 1), ChunkFilter(access_classes=("class-a",)), 1) == []

    async def test_attributes_alone_can_change(self, index: ChunkIndex) -> None:
        await index.stage([FULL])
        moved = msgspec.structs.replace(
            FULL, access_class="class-b", updated_at="2025-08-01T00:00:00.000000Z", fields={}
        )
        await index.stage([moved])
        assert await index.get(["c1"]) == {"c1": moved}
        old, new = ChunkFilter(access_classes=("class-a",)), ChunkFilter(access_classes=("class-b",))
        assert await index.lexical(words("荷重"), old, 5) == [] == await index.dense(unit(1), old, 5)
        assert [hit.id for hit in await index.lexical(words("荷重"), new, 5)] == ["c1"]
        assert [hit.id for hit in await index.dense(unit(1), new, 5)] == ["c1"]

    async def test_the_later_of_two_equal_ids_in_a_batch_wins(self, index: ChunkIndex) -> None:
        await index.stage([chunk("c1", "一"), chunk("c1", "二")])
        assert await found(index, "一") == set()
        assert await found(index, "二") == {"c1"}

    async def test_a_vector_stays_when_restaged_without_one_of_the_same_model(self, index: ChunkIndex) -> None:
        await index.stage([chunk("c1", vector=unit(1))])
        await index.stage([chunk("c1", vector_model=MODEL, updated_at="2026-01-01T00:00:00.000000Z")])
        kept = (await index.get(["c1"]))["c1"]
        assert (kept.vector, kept.vector_model, kept.updated_at[:4]) == (unit(1), MODEL, "2026")

    async def test_a_vector_of_another_model_goes(self, index: ChunkIndex) -> None:
        await index.stage([chunk("c1", vector=unit(1))])
        await index.stage([chunk("c1", vector_model="other")])
        kept = (await index.get(["c1"]))["c1"]
        assert (kept.vector, kept.vector_model) == (None, "")
        assert await index.dense(unit(1), ALL, 5) == []

    async def test_a_chunk_staged_as_text_gets_its_vector_later(self, index: ChunkIndex) -> None:
        await index.stage([chunk("c1", "荷重")])
        assert await index.dense(unit(1), ALL, 5) == []
        await index.stage([chunk("c1", "荷重", vector=unit(1))])
        assert [hit.id for hit in await index.dense(unit(1), ALL, 5)] == ["c1"]
        assert await found(index, "荷重") == {"c1"}

    async def test_collect_keeps_the_ids_given(self, index: ChunkIndex) -> None:
        await index.stage([chunk(f"c{n}", "語", f"語{n}", vector=unit(1, n)) for n in range(4)])
        await index.collect({"cmms/work_orders/1-1": ("c1", "c3", "unknown")}, 1)
        assert [one.id for one in await scanned(index)] == ["c1", "c3"]
        assert await found(index, "語", "語0", "語2") == {"c1", "c3"}
        assert {hit.id for hit in await index.dense(unit(1), ALL, 9)} == {"c1", "c3"}

    async def test_collect_is_exact_on_the_document_key(self, index: ChunkIndex) -> None:
        keys = [
            "erp/items/1-1",
            "erp/items/1-12",
            "erp/items/1",
            "erp/items/1-1/x",
            "erp/items/１-1",
            "erp/items/A_%",
            "erp/items/AB%",
        ]
        await index.stage([chunk(f"c{n}", document=key) for n, key in enumerate(keys)])
        await index.collect({"erp/items/1-1": (), "erp/items/A_%": ()}, 1)
        assert sorted(one.document for one in await scanned(index)) == sorted(
            set(keys) - {"erp/items/1-1", "erp/items/A_%"}
        )

    async def test_ids_are_exact(self, index: ChunkIndex) -> None:
        ids = ["ABC-1234-X", "abc-1234-x", "ABC-1234", "1-1", "1-12", "%", "_"]
        await index.stage([chunk(name, name) for name in ids])
        assert set(await index.get(["ABC-1234-X", "1-1", "%"])) == {"ABC-1234-X", "1-1", "%"}
        await index.collect({"cmms/work_orders/1-1": tuple(i for i in ids if i not in ("1-1", "ABC-1234"))}, 1)
        assert {one.id for one in await scanned(index)} == set(ids) - {"1-1", "ABC-1234"}

    async def test_collect_again_and_of_unknown_documents(self, index: ChunkIndex) -> None:
        await index.stage([chunk("c1")])
        for revision in (1, 2):
            await index.collect({"cmms/work_orders/1-1": (), "no/such/document": ("x",)}, revision)
        assert await index.count() == 0

    async def test_a_document_of_more_than_10_000_chunks_goes_whole(self, index: ChunkIndex) -> None:
        many = [chunk(f"c{n:05}", "語") for n in range(10_050)]
        for start in range(0, len(many), 2_010):
            await index.stage(many[start : start + 2_010])
        await index.stage([chunk("other", document="cmms/work_orders/1-12")])
        assert await index.count() == 10_051
        await index.collect({"cmms/work_orders/1-1": ()}, 1)
        assert [one.id for one in await scanned(index)] == ["other"]

    async def test_what_was_removed_can_be_staged_again(self, index: ChunkIndex) -> None:
        await index.stage([FULL])
        await index.collect({FULL.document: ()}, 1)
        await index.stage([FULL])
        assert await scanned(index) == [FULL]
        assert await found(index, "荷重") == {"c1"}

    async def test_scan_is_complete_and_in_byte_order(self, index: ChunkIndex) -> None:
        ids = [f"{prefix}{n}" for n in range(400) for prefix in ("z", "A", "鍵", "\U00020b9f")]
        await index.stage([chunk(name, "語") for name in ids])
        assert [one.id for one in await scanned(index)] == sorted(ids, key=str.encode)

    async def test_the_revision_outlives_reopening(self, open_index: OpenIndex) -> None:
        index = await open_index()
        await index.stage([FULL])
        await index.collect({FULL.document: ("c1",)}, 41)
        await index.collect({}, 42)
        assert await index.revision() in (42, None)
        await index.close()
        index = await open_index()
        assert await index.revision() in (42, None)
        assert await scanned(index) == [FULL]
        assert await found(index, "荷重") == {"c1"}
        await index.close()

    async def test_many_writers_at_once(self, index: ChunkIndex) -> None:
        async def live(n: int) -> None:
            document = f"s/c/{n}"
            await index.stage([chunk(f"{n}-{i}", "語", document=document, vector=unit(1, i)) for i in range(3)])
            await index.collect({document: (f"{n}-0",)}, n)

        await asyncio.gather(*map(live, range(30)))
        assert {one.id for one in await scanned(index)} == {f"{n}-0" for n in range(30)}
        assert await found(index, "語") == {f"{n}-0" for n in range(30)}

    async def test_close_twice(self, open_index: OpenIndex) -> None:
        index = await open_index()
        await index.close()
        await index.close()

    async def test_drop_leaves_nothing(self, open_index: OpenIndex) -> None:
        index = await open_index()
        await index.stage([FULL])
        await index.collect({}, 5)
        await index.drop()
        index = await open_index()
        assert await index.count() == 0
        assert await index.revision() in (0, None)
        await index.drop()
