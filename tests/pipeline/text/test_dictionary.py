"""The user's dictionary: checked with line numbers, versioned, and heard in terms and questions."""

from pathlib import Path

import pytest

from pipeline.errors import InvalidConfiguration
from pipeline.text.dictionary import UserDictionary, changed_words, parse_dictionary, read_dictionary
from pipeline.text.lexicon import LexicalAnalysis, Lexicon
from pipeline.text.patterns import load_identifiers
from pipeline.text.questions import MOST_VARIANTS

PRODUCT = load_identifiers()
CSV = """word,reading,kind,synonyms
# our departments
保全推進課,ほぜんすいしんか,department,設備保全課|保全課

ガレリア号,,product,G号機
"XR 7",,product,
ロボ太,ろぼた,product,F-17
髙橋健,タカハシケン,person,
試作七号,,code,
"""


def parsed(text: str = CSV) -> UserDictionary:
    return parse_dictionary("mine.csv", text, PRODUCT)


def analysis(text: str = CSV) -> LexicalAnalysis:
    return Lexicon(PRODUCT.patterns, (), parsed(text)).analyzer()


def test_words_are_folded() -> None:
    words = {word.word: word for word in parsed().words}
    assert list(words) == ["保全推進課", "ガレリア号", "xr 7", "ロボ太", "高橋健", "試作七号"]
    assert words["保全推進課"].reading == "ホゼンスイシンカ"
    assert words["保全推進課"].synonyms == ("設備保全課", "保全課")


def test_words_are_terms_and_compounds_keep_their_parts() -> None:
    plain = Lexicon(PRODUCT.patterns).analyzer()
    assert "ガレリア号" not in plain.terms.analyze("新しいガレリア号").terms
    terms = analysis().terms
    assert terms.analyze("新しいガレリア号とＸＲ　７").terms == ("新しい", "ガレリア号", "xr7")
    assert terms.analyze("保全推進課").terms == ("保全推進課", "保全", "推進", "課")
    assert terms.analyze("髙橋健").terms == ("高橋健", "高橋", "健")


def test_codes_are_identifiers() -> None:
    found = analysis().terms.analyze("試作七号を見た")
    assert found.identifiers == ("試作七号",)
    assert [m.family for m in found.mentions] == ["id"]


def test_codes_need_no_other_words() -> None:
    only = analysis("word,kind,synonyms\n試作七号,code,試作八号\n試作八号,code,\n")
    assert only.terms.analyze("試作七号の点検").terms == ("試作七号", "点検")
    assert ("試作八号", 0.8) in only.questions.form("試作七号").synonyms
    assert only.readings.of("点検") == "テンケン"


def test_synonyms_act_on_questions_with_their_weight() -> None:
    questions = analysis().questions
    assert dict(questions.form("設備保全課の電話").synonyms)["保全推進課"] == 0.8
    assert dict(questions.form("ロボ太").synonyms)["f-17"] == 0.8
    weighted = analysis("word,synonyms,weight\nロボ太,ガレリア号,0.3\n").questions.form("ロボ太")
    assert ("ガレリア号", 0.3) in weighted.synonyms


def test_a_question_is_also_put_with_a_synonym_in_the_place_of_the_word() -> None:
    def variants(text: str, *lines: str) -> list[tuple[tuple[str, ...], float, str]]:
        form = analysis("\n".join(["word,synonyms,weight", *lines])).questions.form(text)
        return [(one.terms, one.weight, "".join(pair[0] for pair in one.bigrams)) for one in form.variants]

    assert variants("ﾛﾎﾞ太の点検", "ロボ太,ガレリア号,") == [(("ガレリア号", "点検"), 0.8, "ガレリア号の点")]
    assert variants("ガレリア号", "ロボ太,ガレリア号|ペガサス,") == [
        (("ロボ太",), 0.8, "ロボ"),
        (("ペガサス",), 0.8, "ペガサ"),
    ]
    assert variants("ロボ太", "ロボ太,ガレリア号,.3") == []
    assert len(variants("ロボ太", "ロボ太,ア号|イ号|ウ号|エ号|オ号|カ号,")) == MOST_VARIANTS


def test_words_without_a_reading_are_read_as_before() -> None:
    text = "word,reading,kind,synonyms\n点滴,テンテキ,word,輸液\n第2倉庫,,place,\n青海波,セイガイハ,product,"
    readings = analysis(text).readings
    read = [readings.of(name) for name in ("輸液ポンプ", "点滴台", "第2倉庫", "青海波")]
    assert read == ["ユエキポンプ", "テンテキダイ", "ダイ2ソウコ", "セイガイハ"]


def test_the_version_depends_on_words_alone() -> None:
    lines = CSV.splitlines()
    turned = "\n".join([lines[0], *reversed(lines[1:])]) + "\n"
    assert parsed().version == parsed(turned).version != ""
    assert UserDictionary().version == ""
    assert parsed(CSV.replace("ほぜん", "ほうぜん")).version != parsed().version


def test_changed_words() -> None:
    before, after = parsed().fingerprints(), parsed(CSV + "新語丸,,,\n").fingerprints()
    assert changed_words(before, after) == ["新語丸"] == changed_words(after, before)
    assert changed_words(before, before) == []
    assert changed_words(
        before, parsed(CSV.replace("ロボ太,ろぼた,product,F-17", "ロボ太,ろぼた,product,K-08")).fingerprints()
    ) == [
        "f-17",
        "k-08",
    ]
    assert changed_words({}, parsed("word\n保全課\n").fingerprints()) == ["保全課"]


@pytest.mark.parametrize(
    ("text", "where", "reason"),
    [
        ("", "mine.csv:", "is empty"),
        ("x,y\n", "mine.csv:1:", "'x' is no column"),
        ("reading\n", "mine.csv:1:", "`word` is needed"),
        ("word,word\n", "mine.csv:1:", "only once"),
        ("word\nあい\n、、\n", "mine.csv:3:", "no letter or digit"),
        ("word\n\n\nあ\n", "mine.csv:4:", "1 characters"),
        ("word\n" + "あ" * 65 + "\n", "mine.csv:2:", "65 characters"),
        ("word,reading\nあい,abc\n", "mine.csv:2:", "not in kana"),
        ("word\nサーバ室\nあい\nｻｰﾊﾞ室\n", "mine.csv:4:", "on line 2 already"),
        ("word,kind\nあい,foo\n", "mine.csv:2:", "'foo' is no kind"),
        ("word\nF-17改\n", "mine.csv:2:", "give it the kind code"),
        ("word,weight\nあい,2\n", "mine.csv:2:", "the weight '2'"),
        ("word,synonyms\nあい,アイ|あい\n", "mine.csv:2:", "its own synonym"),
        ('word\n"あい\nうえ', "mine.csv:2:", "not CSV|control"),
        ("word\nあい,う\n", "mine.csv:2:", "2 columns, the header has 1"),
        ("word\nあ\x07い\n", "mine.csv:2:", "control character"),
        ('word\n"two\nlines"\nx\n', "mine.csv:2:", "control character"),
    ],
)
def test_a_bad_line_is_refused_with_its_number(text: str, where: str, reason: str) -> None:
    with pytest.raises(InvalidConfiguration, match=reason) as refused:
        parsed(text)
    assert str(refused.value).startswith(where)


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_bytes(b"\xef\xbb\xbfword\r\n" + "保全課\r\n".encode())
    assert [word.word for word in read_dictionary(path).words] == ["保全課"]
    path.write_bytes("word\n保全課\n".encode() + "点検".encode("cp932"))
    with pytest.raises(InvalidConfiguration, match=r"mine\.csv:3: not UTF-8"):
        read_dictionary(path)
    with pytest.raises(InvalidConfiguration, match=r"gone\.csv: cannot be read"):
        read_dictionary(tmp_path / "gone.csv")
