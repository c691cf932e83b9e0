"""`shinsen analyze` shows each stage."""

from pathlib import Path

from tests.ops.commands import shinsen, shinsen_json

TEXT = "髙橋㈱のＦ－１７は、令和7年7月8日に千二百円。ネトワークとスマホ。"


def test_each_stage(tmp_path: Path) -> None:
    found = shinsen_json("analyze", TEXT, "--data", tmp_path)
    assert found["normalized"].startswith("高橋株式会社のf-17は")
    assert found["identifiers"] == [{"text": "f-17", "kind": "code", "type": None, "span": [4, 8]}]
    assert [(v["text"], v["kind"]) for v in found["values"]] == [("2025-07-08", "date"), ("1200円", "amount")]
    spans = {v["text"]: TEXT[slice(*v["span"])] for v in found["values"]}
    assert spans == {"2025-07-08": "令和7年7月8日", "1200円": "千二百円"}
    assert {"surface": "高橋", "part_of_speech": "名詞-固有名詞-人名-姓", "normalized": "高橋"}.items() <= found[
        "morphemes"
    ][0].items()
    assert {t["text"] for t in found["terms"]} >= {"高橋", "f-17", "2025-07-08", "1200円"}
    assert "高橋" in found["bigrams"]
    assert {"text": "スマートフォン", "weight": 0.2} in found["question"]["synonyms"]
    assert "ネトワーク" in found["question"]["unknown_words"]


def test_own_words_are_heard_and_remembered_or_refused(tmp_path: Path) -> None:
    words = tmp_path / "words.csv"
    words.write_text("word,synonyms\nネトワーク室,情シス\n", encoding="utf-8")
    shown = shinsen("analyze", "ネトワーク室", "--data", tmp_path, "--dictionary", words)
    assert "ネトワーク室" in shown.stdout and "情シス (0.8)" in shown.stdout
    assert "ネトワーク室" in shinsen("analyze", "-", "--data", tmp_path, stdin="ネトワーク室").stdout
    words.write_text("word\nあ\n", encoding="utf-8")
    refused = shinsen("analyze", "点検", "--data", tmp_path, "--dictionary", words)
    assert refused.exit_code == 2 and "words.csv:2:" in refused.stderr


def test_nothing_to_show() -> None:
    assert "(none)" in shinsen("analyze", "").stdout
