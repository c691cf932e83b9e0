"""Searching: what is found, in which order, under which filter."""

from typing import Any

import pytest

from pipeline.ports.chunk_index import ChunkFilter, ChunkIndex, IndexHit
from tests.contracts.chunk_examples import ALL, chunk, unit, words
from tests.contracts.chunk_fixtures import ChunkFixtures

HARD_TOKENS = [
    *(
        "f-17",
        "abc-1234-x",
        "abc-1234",
        "err_timeout_504",
        "c++",
        "c#",
        "①",
        "㍿",
        "がき",
        "かき",
        "か\u3099き",
        "パン",
        "ハン",
    ),
    *("𠮟る", "叱る", "😀", "👨‍👩‍👧", "1.5", "50%", "a\u200bb", "é", "e", "ー", "サーバー", "サーバ"),
    *(
        '"',
        "'",
        "*",
        "^",
        "(",
        ")",
        ":",
        "-",
        "+",
        "{x}",
        "or",
        "and",
        "not",
        "near",
        "title:x",
        "terms",
        "\\",
        'a"b',
        "--",
        "/*",
    ),
]


def ids(hits: list[IndexHit]) -> list[str]:
    return [hit.id for hit in hits]


class ChunkSearch(ChunkFixtures):
    async def test_any_term_may_match_and_more_is_better(self, index: ChunkIndex) -> None:
        await index.stage(
            [
                chunk("both", "荷重", "超過", "x"),
                chunk("one", "荷重", "y", "z"),
                chunk("none", "点検", "y", "z"),
                *(chunk(f"other{n}", "別", "y", "z") for n in range(9)),
            ]
        )
        hits = await index.lexical(words("荷重", "超過"), ALL, 10)
        assert ids(hits) == ["both", "one"]
        assert hits[0].score > hits[1].score > 0
        assert hits[0].document == "cmms/work_orders/1-1"

    async def test_title_bigrams_and_identifiers_are_searched(self, index: ChunkIndex) -> None:
        await index.stage(
            [
                chunk("t", title_terms=("点検",)),
                chunk("b", bigrams=("荷重",)),
                chunk("i", identifiers=("f-17",)),
                *(chunk(f"other{n}", "別") for n in range(9)),
            ]
        )
        assert ids(await index.lexical(words("点検"), ALL, 5)) == ["t"]
        assert ids(await index.lexical(words(bigrams=("荷重",)), ALL, 5)) == ["b"]
        assert ids(await index.lexical(words(identifiers=("f-17",)), ALL, 5)) == ["i"]
        assert ids(await index.lexical(words(identifiers=("荷重", "別", "f-17")), ALL, 5)) == ["i"]
        assert sorted(ids(await index.lexical(words("点検", bigrams=("荷重",), identifiers=("f-17",)), ALL, 5))) == [
            "b",
            "i",
            "t",
        ]

    async def test_a_title_counts_more_and_not_without_bound(self, index: ChunkIndex) -> None:
        """Title and text are one field with one saturation: two words of a text outweigh one in a title, which
        outweighs one in a text."""
        rest = [chunk(f"f{n:02}", "灯", "消灯", "記録", title_terms=("表",), document=f"d/f/{n}") for n in range(12)]
        await index.stage(
            [
                chunk("title", "灯", "消灯", "記録", title_terms=("弁",), document="d/x/1"),
                chunk("both", "弁", "漏洩", "記録", title_terms=("表",), document="d/x/2"),
                chunk("one", "弁", "消灯", "記録", title_terms=("表",), document="d/x/3"),
                chunk("other", "漏洩", "消灯", "記録", title_terms=("図",), document="d/x/4"),
                *rest,
            ]
        )
        assert ids(await index.lexical(words("弁", "漏洩"), ALL, 2)) == ["both", "title"]
        assert ids(await index.lexical(words("弁"), ALL, 3))[0] == "title"

    async def test_tokens_match_whole_and_exactly(self, index: ChunkIndex) -> None:
        await index.stage([chunk(f"c{n:02}", token) for n, token in enumerate(HARD_TOKENS)])
        for n, token in enumerate(HARD_TOKENS):
            assert ids(await index.lexical(words(token), ALL, 99)) == [f"c{n:02}"], token
        assert await index.lexical(words("f", "17", "abc", "c"), ALL, 99) == []

    @pytest.mark.parametrize(
        "text", ['" OR "荷重', "荷重*", "NOT 荷重", "荷重 AND 重", "terms : 荷重", "'; DROP TABLE chunk; --", "{"]
    )
    async def test_a_token_is_never_syntax(self, index: ChunkIndex, text: str) -> None:
        await index.stage([chunk("c1", "荷重")])
        assert await index.lexical(words(text, bigrams=(text,), identifiers=(text,)), ALL, 5) == []
        assert await index.documents_with([text], 5) == []

    async def test_an_empty_query_finds_nothing(self, index: ChunkIndex) -> None:
        await index.stage([chunk("c1", "荷重", bigrams=("荷重",))])
        assert await index.lexical(words(), ALL, 5) == []
        assert await index.lexical(words("", bigrams=("",), identifiers=("",)), ALL, 5) == []
        assert await index.lexical(words("荷重"), ALL, 0) == []

    async def test_a_long_question(self, index: ChunkIndex) -> None:
        await index.stage([chunk("c1", "語500", *(f"他{n}" for n in range(50)))])
        many = tuple(f"語{n}" for n in range(1_000))
        assert ids(await index.lexical(words(*many, bigrams=many), ALL, 5)) == ["c1"]

    async def test_lexical_ties_by_id(self, index: ChunkIndex) -> None:
        names = [f"c{n:03}" for n in range(60)]
        await index.stage([chunk(name, "荷重") for name in reversed(names)])
        assert ids(await index.lexical(words("荷重"), ALL, 7)) == names[:7]

    async def test_dense_is_by_cosine(self, index: ChunkIndex) -> None:
        await index.stage(
            [
                chunk("far", vector=unit(-1)),
                chunk("near", vector=unit(3, 1)),
                chunk("right", vector=unit(0, 1)),
                chunk("without"),
            ]
        )
        hits = await index.dense(unit(1), ALL, 9)
        assert ids(hits) == ["near", "right", "far"]
        assert [hit.score for hit in hits] == pytest.approx([3 / 10**0.5, 0, -1], abs=1e-5)
        assert ids(await index.dense(unit(1), ALL, 1)) == ["near"]
        assert await index.dense(unit(1), ALL, 0) == []

    async def test_dense_ties_by_id(self, index: ChunkIndex) -> None:
        names = [f"c{n:03}" for n in range(300)]
        await index.stage([chunk(name, vector=unit(1, 1)) for name in reversed(names)])
        await index.stage([chunk("z", vector=unit(1))])
        assert ids(await index.dense(unit(1), ALL, 7)) == ["z", *names[:6]]

    async def test_a_filter_never_starves_the_list(self, index: ChunkIndex) -> None:
        hidden = [chunk(f"h{n:03}", "荷重", vector=unit(1), access_class="hidden") for n in range(600)]
        shown = [
            chunk(f"s{n:02}", "荷重", "他", "の", "語", vector=unit(0, 1, n), access_class="shown") for n in range(20)
        ]
        await index.stage([*hidden, *shown])
        where = ChunkFilter(access_classes=("shown", "unknown"))
        assert set(ids(await index.lexical(words("荷重"), where, 50))) == {one.id for one in shown}
        assert set(ids(await index.dense(unit(1), where, 50))) == {one.id for one in shown}
        assert len(await index.dense(unit(1), where, 15)) == 15

    async def test_a_filter_that_leaves_one_of_many_finds_it(self, index: ChunkIndex) -> None:
        """The one is the worst by words and by vector: a filter after the ranking would lose it."""
        others = [chunk(f"c{n:05d}", "軸受", "点検", document=f"a/b/{n}", vector=unit(1)) for n in range(self.MANY - 1)]
        for start in range(0, len(others), 2_000):
            await index.stage(others[start : start + 2_000])
        mine: dict[str, Any] = {
            "source": "erp", "collection": "parts", "type": "Part", "access_class": "class-z",
            "document": "erp/parts/1", "updated_at": "2030-01-01T00:00:00.000000Z", "fields": {"place": "屋上"},
        }  # fmt: skip
        filler = ("長", "い", "文") * 50
        await index.stage([chunk("z", "軸受", *filler, vector=unit(0.1, 1), identifiers=("z-1",), **mine)])
        for where in (
            ChunkFilter(sources=("erp",)),
            ChunkFilter(collections=("parts",)),
            ChunkFilter(types=("Part",)),
            ChunkFilter(documents=("erp/parts/1",)),
            ChunkFilter(updated_from="2029-01-01T00:00:00.000000Z"),
            ChunkFilter(fields={"place": ("屋上",)}),
            ChunkFilter(access_classes=("class-z",)),
            ChunkFilter(identifiers=("z-1",)),
        ):
            assert [hit.id for hit in await index.lexical(words("軸受", "点検"), where, 10)] == ["z"], where
            assert [hit.id for hit in await index.dense(unit(1), where, 10)] == ["z"], where

    async def test_no_classes_at_all_see_nothing(self, index: ChunkIndex) -> None:
        await index.stage([chunk("c1", "荷重", vector=unit(1))])
        where = ChunkFilter(access_classes=())
        assert await index.lexical(words("荷重"), where, 5) == [] == await index.dense(unit(1), where, 5)

    @pytest.mark.parametrize(
        ("where", "expected"),
        [
            (ChunkFilter(), "abcd"),
            (ChunkFilter(access_classes=("k1",)), "ab"),
            (ChunkFilter(access_classes=("k1", "k2")), "abc"),
            (ChunkFilter(access_classes=("k",)), ""),
            (ChunkFilter(sources=("cmms",)), "ac"),
            (ChunkFilter(sources=("cmms", "dms")), "abcd"),
            (ChunkFilter(collections=("reports",)), "b"),
            (ChunkFilter(types=("Manual",)), "cd"),
            (ChunkFilter(documents=("cmms/w/1", "dms/x/2")), "ad"),
            (ChunkFilter(documents=("cmms/w/",)), ""),
            (ChunkFilter(updated_from="2025-02-01T00:00:00.000000Z"), "bcd"),
            (ChunkFilter(updated_to="2025-02-01T00:00:00.000000Z"), "a"),
            (ChunkFilter(updated_from="2025-02-01T00:00:00.000000Z", updated_to="2025-03-01T00:00:00.000000Z"), "b"),
            (ChunkFilter(fields={"no": ("K-08",)}), "a"),
            (ChunkFilter(fields={"no": ("K-08", "K-0")}), "ab"),
            (ChunkFilter(fields={"no": ("k-08",)}), ""),
            (ChunkFilter(fields={"tags": ("安全",)}), "ab"),
            (ChunkFilter(fields={"tags": ("月次",), "no": ("K-08",)}), "a"),
            (ChunkFilter(fields={"pages": ("3",)}), "c"),
            (ChunkFilter(fields={"pages": ("4",)}), "d"),
            (ChunkFilter(fields={"hours": ("1.5",)}), "c"),
            (ChunkFilter(fields={"urgent": ("true",)}), "d"),
            (ChunkFilter(fields={"urgent": ("false",)}), "c"),
            (ChunkFilter(fields={"missing": ("x",)}), ""),
            (ChunkFilter(fields={"nothing": ("None",)}), ""),
            (ChunkFilter(fields={"no' OR 1=1 --": ("x",)}), ""),
            (ChunkFilter(access_classes=("k1",), sources=("cmms",), fields={"no": ("K-08",)}), "a"),
            (ChunkFilter(identifiers=("f-17",)), "ab"),
            (ChunkFilter(identifiers=("f-17", "f-170")), "abc"),
            (ChunkFilter(identifiers=("f-17",), sources=("dms",)), "b"),
            (ChunkFilter(identifiers=("荷重",)), ""),
            (ChunkFilter(identifiers=("",)), ""),
            (ChunkFilter(identifiers=('" OR 荷重',)), ""),
        ],
    )
    async def test_filters(self, index: ChunkIndex, where: ChunkFilter, expected: str) -> None:
        rows = [
            ("a", "k1", "cmms/w/1", "WorkOrder", "2025-01-01", {"no": "K-08", "tags": ["安全", "月次"]}),
            ("b", "k1", "dms/reports/1", "Report", "2025-02-01", {"no": "K-0", "tags": ["安全"]}),
            (
                "c",
                "k2",
                "cmms/w/2",
                "Manual",
                "2025-03-01",
                {"pages": 3, "hours": 1.5, "urgent": False, "nothing": None},
            ),
            ("d", "k3", "dms/x/2", "Manual", "2025-04-01", {"pages": 4.0, "urgent": True}),
        ]
        codes: dict[str, Any] = {
            "a": {"identifiers": ("f-17", "k-08")},
            "b": {"title_terms": ("点検", "f-17")},
            "c": {"identifiers": ("f-170", "af-17")},
        }
        await index.stage(
            [
                chunk(
                    name,
                    *(("荷重", "f-17") if name == "d" else ("荷重",)),
                    **codes.get(name, {}),
                    vector=unit(1, n),
                    access_class=access_class,
                    document=document,
                    source=document.split("/")[0],
                    collection=document.split("/")[1],
                    type=kind,
                    updated_at=f"{day}T00:00:00.000000Z",
                    fields=fields,
                )
                for n, (name, access_class, document, kind, day, fields) in enumerate(rows)
            ]
        )
        assert "".join(sorted(ids(await index.lexical(words("荷重"), where, 9)))) == expected
        assert "".join(sorted(ids(await index.dense(unit(1), where, 9)))) == expected

    async def test_documents_with_all_bigrams_in_one_chunk(self, index: ChunkIndex) -> None:
        await index.stage(
            [
                chunk("1", document="s/c/2", bigrams=("青木", "木製")),
                chunk("2", document="s/c/1", bigrams=("青木", "木製", "製作")),
                chunk("3", document="s/c/3", bigrams=("青木",)),
                chunk("4", document="s/c/3", bigrams=("木製",)),
                chunk("5", "青木", "木製", document="s/c/4"),
                chunk("6", document="s/c/1", bigrams=("青木", "木製")),
            ]
        )
        assert await index.documents_with(["青木", "木製"], 9) == ["s/c/1", "s/c/2"]
        assert await index.documents_with(["青木"], 9) == ["s/c/1", "s/c/2", "s/c/3"]
        assert await index.documents_with(["青木"], 1) == ["s/c/1"]
        assert await index.documents_with(["青木", "鉄製"], 9) == []
        assert await index.documents_with([], 9) == []

    async def test_a_common_bigram_does_not_hide_a_rare_term(self, index: ChunkIndex) -> None:
        crowd = [chunk(f"c{n:04}", "部品", bigrams=("した",)) for n in range(2_000)]
        await index.stage([*crowd, chunk("rare", "荷重", bigrams=("した",), identifiers=("f-17",))])
        hits = await index.lexical(words("荷重", bigrams=("した",)), ALL, 3)
        assert hits[0].id == "rare"
        hits = await index.lexical(words(bigrams=("した",), identifiers=("f-17",)), ALL, 3)
        assert hits[0].id == "rare"
        assert len(await index.lexical(words(bigrams=("した",)), ALL, 3)) == 3
