"""Chunks: exact offsets, nothing lost, never across headings, bounded in size and time."""

import time
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.errors import InvalidEvent
from pipeline.steps.chunk import DEFAULT_LIMITS, ChunkLimits, chunk
from schemas.access import AccessRule
from schemas.document import Chunk, Document

SENTENCE = "駐車ブレーキは、定格荷重を積んだ状態で停止を保持できなければならない。"


def _document(body: str, *, title: str = "安全作業マニュアル", key: str = "dms/documents/SM-210") -> Document:
    return Document(key=key, title=title, body=body, type="Manual", updated_at="", access=AccessRule())


def _chunks(body: str, limits: ChunkLimits = DEFAULT_LIMITS) -> list[Chunk]:
    return chunk(_document(body), limits)


BODIES = st.lists(
    st.sampled_from(
        ["# 見出し\n", "## 小見出し\n", "第1条(目的) ", "第2章 総則\n", "1.2 手順\n", SENTENCE, "止まれ!", "「はい。」",
         "\n", "\r\n", " ", "\u3000" * 30, "あ" * 90, "a b " * 9, "。", "!?", "```\n", "\ud800", "\0", "1．5", "3.14 "]
    ),
    max_size=40,
).map("".join)  # fmt: skip
LIMITS = st.builds(
    ChunkLimits, target=st.integers(20, 60), maximum=st.integers(60, 90), longest_overlap=st.integers(0, 40)
)


@given(BODIES, LIMITS)
@settings(max_examples=300)
def test_exact_offsets_order_size_and_nothing_lost(body: str, limits: ChunkLimits) -> None:
    chunks = _chunks(body, limits)
    covered: set[int] = set()
    for number, one in enumerate(chunks):
        assert one.text == body[one.start : one.end]
        assert one.ordinal == number
        assert len(one.text) <= limits.maximum
        assert one.text == one.text.strip()
        covered.update(range(one.start, one.end))
    assert all(i in covered for i, character in enumerate(body) if not character.isspace())
    for one, other in pairwise(chunks):
        assert one.start < other.start
        assert one.end < other.end
    assert len({one.id for one in chunks}) == len(chunks)
    assert chunks == _chunks(body, limits)


@given(BODIES)
def test_neighbours_overlap_only_under_the_same_heading(body: str) -> None:
    chunks = _chunks(body, ChunkLimits(target=40, maximum=80))
    for one, other in pairwise(chunks):
        if other.start < one.end:
            assert one.headings == other.headings
            assert one.end - other.start <= 150


MANUAL = f"""# 安全作業マニュアル

## 第1章 総則

第1条(目的) {SENTENCE}
第2条(適用範囲) {SENTENCE}

## 第2章 点検

```
# これは見出しではない
```
第5条に定めるとおりとする。

1.2 手順
{SENTENCE}
1. 制動装置
2. 荷役装置

# 附則
"""


def test_headings_of_markdown_articles_and_numbers() -> None:
    chunks = _chunks(MANUAL)
    top = "安全作業マニュアル"
    assert [c.headings for c in chunks] == [
        (top, "第1章 総則", "第1条(目的)"),
        (top, "第1章 総則", "第2条(適用範囲)"),
        (top, "第2章 点検"),
        (top, "第2章 点検", "1.2 手順"),
        ("附則",),
    ]
    assert chunks[0].text.startswith("# 安全作業マニュアル\n\n## 第1章 総則\n\n第1条")
    assert "これは見出しではない" in chunks[2].text
    assert "第5条に定める" in chunks[2].text
    assert chunks[3].text.endswith("2. 荷役装置")
    assert chunks[4].text == "# 附則"


def test_a_short_text_is_one_chunk_and_a_long_one_is_cut_between_sentences() -> None:
    assert len(_chunks(SENTENCE * 10)) == 1
    chunks = _chunks(SENTENCE * 40)
    assert len(chunks) > 1
    for one, other in pairwise(chunks):
        assert one.text.endswith("。")
        assert other.start == one.end - len(SENTENCE)
    assert all(300 <= len(one.text) <= 500 for one in chunks)


def test_closing_brackets_stay_with_their_sentence() -> None:
    body = ("彼は「止まれ。」" * 100) + "数値は１．５である。" * 50
    for one in _chunks(body):
        assert one.text.endswith(("。」", "。"))
        assert not one.text.startswith(("」", "５"))


def test_a_sentence_without_an_end_is_cut_at_the_maximum() -> None:
    chunks = _chunks("あ" * 1_500)
    assert [len(one.text) for one in chunks] == [600, 600, 300]
    soft = _chunks(("あ" * 49 + "、") * 30)
    assert all(one.text.endswith("、") for one in soft)


def test_a_body_of_white_space_keeps_the_title_searchable() -> None:
    for body in ("", " \n\u3000\t"):
        (only,) = _chunks(body)
        assert (only.start, only.end, only.text) == (0, 0, "")
        assert chunk(_document(body, title=" ")) == []


def test_an_unchanged_chunk_keeps_its_id() -> None:
    before = _chunks(f"# 一\n{SENTENCE}\n# 二\n{SENTENCE}")
    after = _chunks(f"# 一\n{SENTENCE}追記。\n# 二\n{SENTENCE}")
    assert after[1].id == before[1].id
    assert after[0].id != before[0].id


def test_an_id_holds_document_title_headings_and_text() -> None:
    (one,) = chunk(_document(SENTENCE))
    prefix, content, number = one.id.split("-")
    assert (len(prefix), len(content), number) == (16, 24, "0")
    (renamed,) = chunk(_document(SENTENCE, title="別の題"))
    (elsewhere,) = chunk(_document(SENTENCE, key="dms/documents/SM-211"))
    assert renamed.id.split("-")[0] == prefix
    assert renamed.id.split("-")[1] != content
    assert elsewhere.id.split("-")[0] != prefix
    assert elsewhere.id.split("-")[1] == content


def test_equal_texts_of_one_document_are_numbered() -> None:
    chunks = _chunks(f"# 一\n{SENTENCE}\n# 一\n{SENTENCE}")
    assert [one.id.split("-")[2] for one in chunks] == ["0", "1"]


def test_too_many_chunks_are_refused_at_once() -> None:
    started = time.perf_counter()
    with pytest.raises(InvalidEvent, match="more than 2000 chunks") as refused:
        _chunks(SENTENCE * 50_000)
    assert refused.value.code == "too_many_chunks"
    with pytest.raises(InvalidEvent):
        _chunks("# 見出し\n" * 3_000)
    assert len(_chunks("# 見出し\n" * 2_000)) == 2_000
    assert time.perf_counter() - started < 2.0


@pytest.mark.parametrize(
    "body",
    ["点検を実施した。" * 210_000, "あ" * 1_700_000, " \n" * 2_500_000 + "a", "a。" + " " * 5_000_000, "第" * 1_700_000,
     "0" * 5_000_000, "#" * 5_000_000, "1." * 2_500_000, "a\n" * 30_000 + " " * 4_000_000, "a " * 2_500_000],
    ids=lambda body: body[:3],
)  # fmt: skip
def test_five_megabytes_are_cut_in_linear_time(body: str) -> None:
    started = time.process_time()
    _chunks(body, ChunkLimits(max_chunks=100_000))
    assert time.process_time() - started < 2.0
