"""What every analyzer keeps."""

import asyncio

import pytest

from pipeline.ports.models import Analyzer
from schemas.document import Analysis
from tests.contracts.texts import F_17, LONG, NOT_F_17, POISON

REPORT = "フォークリフトF-17の事故原因は、駐車ブレーキの摩耗である。ABC-1234-Xとサーバーも点検した。"


class AnalyzerContract:
    """Subclasses give the fixture `analyzer`."""

    def test_it_has_a_version(self, analyzer: Analyzer) -> None:
        assert analyzer.version
        assert not set(analyzer.version) & set(" \n")

    async def test_no_texts_no_results(self, analyzer: Analyzer) -> None:
        assert await analyzer.tokens([]) == []
        assert await analyzer.mentions([]) == []

    async def test_one_result_per_text_in_order_whatever_the_batch(self, analyzer: Analyzer) -> None:
        texts = [REPORT, "", "トヨタ自動車は名古屋に工場を持つ。", REPORT, "点検"]
        together = await analyzer.tokens(texts)
        assert together == [(await analyzer.tokens([text]))[0] for text in texts]
        assert together[0] == together[3] != together[2]
        mentions = await analyzer.mentions(texts)
        assert mentions == [(await analyzer.mentions([text]))[0] for text in texts]

    async def test_places_are_the_terms_with_their_spans(self, analyzer: Analyzer) -> None:
        assert await analyzer.places([]) == []
        for text in (REPORT, "", *POISON.values()):
            (found,), (analysis,) = await analyzer.places([text]), await analyzer.tokens([text])
            assert tuple(token.term for token in found) == analysis.terms
            assert all(0 <= token.start < token.end <= len(text) for token in found)

    async def test_a_question_is_asked_in_terms_of_the_documents(self, analyzer: Analyzer) -> None:
        assert await analyzer.questions([]) == []
        (asked,), (analysis,) = await analyzer.questions([REPORT]), await analyzer.tokens([REPORT])
        form = asked.form
        assert asked.analysis == analysis
        assert set(form.terms) <= set(analysis.terms) and len(set(form.terms)) == len(form.terms)
        assert all(0 < weight < 1 and term not in form.terms for term, weight in form.synonyms)
        for text in POISON.values():
            assert len(await analyzer.questions([text])) == 1

    async def test_readings_are_katakana(self, analyzer: Analyzer) -> None:
        assert await analyzer.readings([]) == []
        assert await analyzer.readings(["ふぉーくりふと", "ﾌｫｰｸ", "F-17", ""]) == [
            "フォークリフト",
            "フォーク",
            "f-17",
            "",
        ]
        for poison in POISON.values():
            assert len(await analyzer.readings([poison])) == 1

    async def test_the_lane_does_not_change_results(self, analyzer: Analyzer) -> None:
        assert await analyzer.tokens([REPORT], lane="bulk") == await analyzer.tokens([REPORT], lane="live")
        assert await analyzer.mentions([REPORT], lane="bulk") == await analyzer.mentions([REPORT])

    async def test_many_calls_at_once(self, analyzer: Analyzer) -> None:
        texts = [f"設備{n}号機の点検を実施した。" for n in range(30)]
        results = await asyncio.gather(*(analyzer.tokens([text]) for text in texts))
        assert [r[0] for r in results] == await analyzer.tokens(texts)

    @pytest.mark.parametrize("written", F_17)
    async def test_an_identifier_is_one_however_it_is_written(self, analyzer: Analyzer, written: str) -> None:
        text = f"昨日{written}を点検した。"
        (analysis,) = await analyzer.tokens([text])
        assert analysis.identifiers == ("f-17",)
        assert "f-17" in analysis.terms
        (mention,) = analysis.mentions
        assert (mention.family, mention.key, mention.method) == ("id", "f-17", "identifier")
        assert text[mention.start : mention.end] == mention.surface == written

    @pytest.mark.parametrize("written", NOT_F_17)
    async def test_another_identifier_is_not_taken_for_it(self, analyzer: Analyzer, written: str) -> None:
        (analysis,) = await analyzer.tokens([f"昨日{written}を点検した。"])
        assert "f-17" not in analysis.identifiers
        assert "f-17" not in analysis.terms

    async def test_a_question_finds_its_text(self, analyzer: Analyzer) -> None:
        report, other, question = await analyzer.tokens([REPORT, "会議室の予約を変更した。", "事故の原因は?"])
        assert _shared(question, report) > _shared(question, other)

    async def test_bigrams_stay_inside_runs_but_cross_spaces_at_japanese(self, analyzer: Analyzer) -> None:
        (analysis,) = await analyzer.tokens(["設備、点検 Ａb"])
        assert analysis.bigrams == ("設備", "点検", "検a", "ab")

    async def test_terms_hold_no_white_space(self, analyzer: Analyzer) -> None:
        for analysis in await analyzer.tokens([REPORT, *POISON.values()]):
            for term in (*analysis.terms, *analysis.bigrams, *analysis.identifiers):
                assert term
                assert term.isprintable()
                assert not any(map(str.isspace, term))

    @pytest.mark.parametrize("name", POISON)
    async def test_any_text_works(self, analyzer: Analyzer, name: str) -> None:
        text = POISON[name]
        (analysis,) = await analyzer.tokens([text])
        assert isinstance(analysis, Analysis)
        for mention in (*analysis.mentions, *(await analyzer.mentions([text[:2_000]]))[0]):
            assert 0 <= mention.start < mention.end <= len(text)

    async def test_a_long_text_works(self, analyzer: Analyzer) -> None:
        (analysis,) = await analyzer.tokens([LONG])
        assert len(analysis.bigrams) == 1_900 * 9

    async def test_mentions_are_exact_spans_and_no_identifiers(self, analyzer: Analyzer) -> None:
        text = "フォークリフトF-17は名古屋工場にある。ハンドパレットトラックも使う。"
        (mentions,) = await analyzer.mentions([text])
        for mention in mentions:
            assert text[mention.start : mention.end] == mention.surface
            assert mention.key
            assert mention.method == "ner"
            assert mention.key != "f-17"


def _shared(one: Analysis, other: Analysis) -> int:
    return len(set(one.terms) & set(other.terms))
