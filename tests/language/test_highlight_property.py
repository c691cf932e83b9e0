"""Every highlight is a span of whole characters whose analysis matches the question, whatever the text is made of."""

import asyncio
import unicodedata
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from api.retrieval.highlight import highlighted, words_of
from api.retrieval.passages import Passage
from api.retrieval.question import AnalyzedQuestion
from api.retrieval.search import Candidate
from pipeline.text.lexicon import LexicalAnalysis, Lexicon
from pipeline.text.normalize import fold
from pipeline.text.patterns import load_identifiers
from schemas.document import ChunkRef, Manifest, Token

WORDS = [
    "サーバー",
    "引き渡し",
    "渡邉",
    "潤滑",
    "軸受",
    "令和7年3月4日",
    "１，２００円",
    "QX-9",
    "F-17",
    "東京",
    "スマートフォン",
    "検査",
]
SPELLINGS = [
    "ｻｰﾊﾞｰ",
    "サーバ",
    "引渡",
    "引渡し",
    "渡辺",
    "2025年3月4日",
    "千二百円",
    "ＱＸ－９",
    "QX-90",
    "f-170",
    "スマホ",
]
ODD = [
    "か\u3099",
    "が",
    "ﾌﾟ",
    "e\u0301",
    "㍿",
    "㈱",
    "𠮷野",
    "葛\U000e0100城",
    "👩\u200d👧",
    "\u200b",
    "ﬁ",
    "ß",
    "İ",
    "\ud800",
    "\x00",
]
WRITTEN = [*WORDS, *SPELLINGS, *ODD, *"。\n のをa9-ー"]
ANALYSIS: LexicalAnalysis = Lexicon(load_identifiers().patterns).analyzer()


class InProcess:
    """The real analysis, without worker processes; counts the texts that it is given."""

    def __init__(self) -> None:
        self.texts = 0

    async def places(self, texts: Sequence[str]) -> list[list[Token]]:
        self.texts += len(texts)
        return [ANALYSIS.terms.tokens_with_offsets(text) for text in texts]


def marked(
    query: str, text: str, title: str = "", analyzer: InProcess | None = None
) -> tuple[AnalyzedQuestion, list[tuple[int, int]]]:
    analysis, form = ANALYSIS.terms.analyze(query), ANALYSIS.questions.form(query)
    question = AnalyzedQuestion(text=query, analysis=analysis, form=form, query_type="keywords", vector=None)
    manifest = Manifest(document="s/c/1", op="upsert", position="1", version="1", stage="full")
    candidate = Candidate(id="1", document="s/c/1", manifest=manifest, ref=ChunkRef("1", 0, len(text)), score=1.0)
    terms = ANALYSIS.terms.analyze(text).terms
    above = ANALYSIS.terms.analyze(title).terms
    passage = Passage(
        candidate=candidate, text=text, headings=(), sequence=terms, title_terms=above, score=1.0, sources=()
    )
    return question, asyncio.run(highlighted(analyzer or InProcess(), question, [passage]))[0]  # type: ignore[arg-type]


@pytest.mark.models
@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map("と".join),
    st.lists(st.sampled_from(WRITTEN), max_size=14).map("".join),
)
def test_highlights(query: str, text: str) -> None:
    question, spans = marked(query, text)
    wanted = {*question.form.terms, *question.analysis.identifiers, *(term for term, _ in question.form.synonyms)}
    tokens = [token for token in ANALYSIS.terms.tokens_with_offsets(text) if token.term in wanted]
    last = 0
    for start, end in spans:
        assert last <= start < end <= len(text), "in order, none empty, none overlapping"
        last = end
        for edge in (start, end):
            assert not (0 < edge < len(text) and unicodedata.combining(text[edge])), "a mark is cut off"
        part = fold(text[start:end])[0]
        by_word = any(word in part for word in words_of(question))
        by_term = any(start <= token.start and token.end <= end for token in tokens)
        assert by_word or by_term, f"{text[start:end]!r} has nothing of {query!r}"
    if (
        len(spans) < 64
    ):  # each term at least once: where it also stands as it was typed, other spellings may stay unmarked
        for term in {token.term for token in tokens if token.kind != "part"}:
            places = [token for token in tokens if token.term == term]
            assert any(s <= one.start and one.end <= e for one in places for s, e in spans), f"{term} is not marked"


@pytest.mark.models
@pytest.mark.parametrize(
    ("query", "text", "found"),
    [
        ("サーバー", "サーバー-", ["サーバー"]),
        ("サーバ", "サーバー-1と予備サーバー-", ["サーバー", "サーバー"]),
        ("8月上旬の気温", "気温は8月に上がる。", ["気温", "8月"]),
        ("梅雨はいつか", "梅雨は長い。つゆとも言い、梅雨と書く。", ["梅雨", "梅雨"]),
        ("引き渡しの日", "引き渡しは済み、引渡しの日も決まった。", ["引き渡し", "引渡し", "日"]),
        ("ビタミンEの量", "ビタミンCとEの量", ["ビタミン", "E", "量"]),
        ("日はいつ", "日本では8日と祝日に休む。", ["日"]),
        ("日はいつ", "日本の発行日", ["日"]),
        ("京都の寺", "東京都と京都の寺", ["京都", "寺"]),
        ("バスの便", "バスケットの日はバスが出る。", ["バス"]),
        ("書込の手順", "書き込みの手順、書込", ["書き込み", "手順", "書込"]),
        ("ペースメーカーの点検", "ペースメーカの点検", ["ペースメーカ", "点検"]),
        ("15時の会議", "午後3時の会議", ["午後3時", "会議"]),
    ],
)
def test_each_place_is_marked_however_it_is_spelled(query: str, text: str, found: list[str]) -> None:
    _, spans = marked(query, text)
    assert [text[start:end] for start, end in spans] == found


@pytest.mark.models
@pytest.mark.parametrize(
    ("query", "text", "title", "texts"),
    [
        ("第二工場の軸受", "第二工場の軸受を替えた。", "", 0),
        ("第二工場の軸受", "工場の軸を替えた。", "第二工場の軸受", 0),
        ("東京のサーバー", "とうきょうのサーバー", "", 1),
    ],
)
def test_a_text_is_analyzed_again_only_where_the_words_do_not_show_its_terms(
    query: str, text: str, title: str, texts: int
) -> None:
    analyzer = InProcess()
    marked(query, text, title, analyzer)
    assert analyzer.texts == texts
