"""Terms of real Sudachi: variants meet, identifiers are whole, spans are exact, nothing raises."""

import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.text.patterns import load_identifiers
from pipeline.text.terms import SUDACHI_MAX_CHARACTERS, TermAnalyzer, bigrams, pieces
from tests.contracts.texts import LONG, POISON

ANALYZER = TermAnalyzer(load_identifiers())


def _terms(text: str) -> tuple[str, ...]:
    return ANALYZER.analyze(text).terms


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("F-17の事故原因は何か。", ("f-17", "事故", "原因")),
        ("駐車ブレーキを点検した。", ("駐車", "ブレーキ", "点検")),
        ("ABC-1234-XとERR_TIMEOUT_504", ("abc-1234-x", "err_timeout_504")),
        ("1,200円と11度と3.5mm", ("1200", "1200円", "円", "11", "11度", "度", "3.5", "3.5mm", "mm")),
        ("これはそれである", ()),
        ("。、!?「」", ()),
        ("Proを使う", ("pro", "使う")),
    ],
)
def test_terms(text: str, terms: tuple[str, ...]) -> None:
    assert _terms(text) == terms


SAME = [
    ("サーバ", "サーバー"),
    ("サーバ", "ｻｰﾊﾞｰ"),
    ("シュレッダ", "シュレッダー"),
    ("取扱", "取り扱い"),
    ("打合せ", "打ち合わせ"),
    ("引っ越し", "引越し"),
    ("附属", "付属"),
    ("髙橋", "高橋"),
    ("山﨑", "山崎"),
    ("齋藤", "斎藤"),
    ("渡邉", "渡辺"),
    ("㈱", "株式会社"),
    ("（株）", "(株)"),
    ("ﾌｫｰｸﾘﾌﾄ", "フォークリフト"),
    ("ＦＡ", "fa"),
    ("Ｆ－１７", "f‐17"),
    ("１０", "10"),
    ("國", "国"),
    ("行う", "行なう"),
    ("曖昧", "あいまい"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_variants_meet(one: str, other: str) -> None:
    assert _terms(one) == _terms(other) != ()


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("書込の設定", ("書き込み", "設定")),  # not 書 and 込み: these are in 図書 and 税込み, too
        ("データ・ベースの移行", ("データ", "データベース", "ベース", "移行")),
        ("データ・設備", ("データ", "設備")),
        ("関ヶ原と関が原", ("関が原", "関が原")),
    ],
)
def test_a_word_in_several_parts_is_one(text: str, terms: tuple[str, ...]) -> None:
    assert _terms(text) == terms
    assert tuple(token.term for token in ANALYZER.tokens_with_offsets(text)) == terms


@pytest.mark.parametrize("noun", ["見回り", "見張り", "出迎え", "似通い", "煮え立ち", "入り混じり"])
def test_two_verbs_that_make_a_noun_give_that_noun(noun: str) -> None:
    assert noun in _terms(noun)


@pytest.mark.parametrize(
    ("text", "found_by"),
    [
        ("湊川市告示第12号", {"湊川市告示第12号", "告示第12号", "告示", "湊川", "12号"}),
        ("労働省令第三十二号", {"労働省令第32号", "省令第32号", "労働", "省令", "32号"}),
        ("総務第12号", {"総務第12号", "総務", "12号"}),
    ],
)
def test_the_words_of_a_documents_number_are_found_too(text: str, found_by: set[str]) -> None:
    assert found_by <= set(_terms(f"これは{text}による。"))
    assert len(ANALYZER.analyze(text).identifiers) == 1


def test_a_year_with_the_letter_of_its_era_is_no_code() -> None:
    assert ANALYZER.analyze("S58年製").identifiers == ()
    assert {"1983"} <= set(_terms("S58年製")) & set(_terms("昭和58年製"))
    assert ANALYZER.analyze("型式S58の点検").identifiers == ("s58",)


@pytest.mark.parametrize(
    ("one", "other"),
    [("サーバ", "サーベイ"), ("東京", "京都"), ("F-17", "F-170"), ("11", "1"), ("修理", "修正"), ("前進", "後進")],
)
def test_others_do_not(one: str, other: str) -> None:
    assert not set(_terms(one)) & set(_terms(other))


TEXTS = st.text(st.sampled_from("あア亜ー㍿ｶﾞ髙A1-．。\n \u3000\ud800\0😀㈱(株)、か\u3099点検設備F17"), max_size=60)


@given(TEXTS)
@settings(max_examples=200)
def test_tokens_are_the_terms_with_their_spans(text: str) -> None:
    tokens = ANALYZER.tokens_with_offsets(text)
    assert tuple(token.term for token in tokens) == _terms(text)
    assert [token.start for token in tokens] == sorted(token.start for token in tokens)
    assert all(0 <= token.start < token.end <= len(text) for token in tokens)


def test_spans_of_a_text_with_wide_characters() -> None:
    text = "㍿髙橋は\u3000Ｆ－１７のサーバーを１１台点検"
    spans = [(text[t.start : t.end], t.term, t.kind) for t in ANALYZER.tokens_with_offsets(text)]
    assert spans == [
        ("㍿", "株式", "word"),
        ("㍿", "会社", "word"),
        ("髙橋", "高橋", "word"),
        ("Ｆ－１７", "f-17", "identifier"),
        ("サーバー", "サーバ", "word"),
        ("１１", "11", "number"),
        ("１１台", "11台", "value"),
        ("台", "台", "word"),
        ("点検", "点検", "word"),
    ]


@pytest.mark.parametrize("name", POISON)
def test_nothing_raises(name: str) -> None:
    ANALYZER.analyze(POISON[name])
    ANALYZER.tokens_with_offsets(POISON[name])


def test_a_text_over_the_limit_of_sudachi_is_cut_between_sentences() -> None:
    assert len(LONG.encode()) > 49_149
    assert _terms(LONG) == _terms("設備の点検を実施した。") * 1_900
    parts = list(pieces(LONG, SUDACHI_MAX_CHARACTERS))
    assert "".join(part for _, part in parts) == LONG
    assert all(part.endswith("。") for _, part in parts)
    assert [start for start, _ in parts] == [LONG.index(part, start) for start, part in parts]


def test_threads_share_an_analyzer() -> None:
    analyzer = TermAnalyzer(load_identifiers())
    expected = _terms(LONG[:2_000])
    results: list[bool] = []

    def work() -> None:
        results.extend(analyzer.analyze(LONG[:2_000]).terms == expected for _ in range(20))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 80


def test_bigrams_of_runs() -> None:
    assert bigrams("設備、点検 ab_c") == ("設備", "点検", "ab")
    assert bigrams("") == ()
    assert bigrams("鋸") == ()


def test_words_that_are_joined_from_parts_are_terms_of_their_own_whatever_came_before() -> None:
    names = ("ローナン", "トラヴァース", "ララランド", "アフレイド", "ヤムヒル")
    terms = [_terms(name) for name in names]
    assert len(set(terms)) == len(names)
    assert [TermAnalyzer(load_identifiers()).analyze(name).terms for name in reversed(names)] == terms[::-1]
