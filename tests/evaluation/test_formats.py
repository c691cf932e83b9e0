"""Golden sets in four formats: the same set comes out of each, and a malformed file is told by file and line."""

import json
from pathlib import Path
from typing import Any

import pytest

from ops.evaluation.formats import Format, Place, read_golden
from ops.evaluation.golden import GoldenQuestion, GoldenSet, Passage, chosen
from pipeline.errors import InvalidConfiguration

PLACE = Place("wiki", "passages")
QUESTIONS = {"q1": ("軸受の油は何か。", "0-0"), "q2": ("停電の原因は?", "0-1"), "q3": ("塗装は\u3000何色?", "1-0")}
PASSAGES = [
    Passage("0-0", "設備", "軸受の油を替えた。"),
    Passage("0-1", "設備", "落雷で停電した。"),
    Passage("1-0", "外装", "塗装は\u2028赤い。"),
]


def write_lines(path: Path, *values: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [value if isinstance(value, str) else json.dumps(value, ensure_ascii=False) for value in values]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def corpus(path: Path) -> Path:
    return write_lines(path, *({"_id": p.id, "title": p.title, "text": p.text} for p in PASSAGES))


def own(folder: Path) -> GoldenSet:
    lines = [
        {"id": id, "question": text, "relevant": {PLACE.key(document): 1}} for id, (text, document) in QUESTIONS.items()
    ]
    return read_golden(write_lines(folder / "own.jsonl", *lines), PLACE, corpus=corpus(folder / "passages.jsonl"))


def beir(folder: Path) -> GoldenSet:
    corpus(folder / "set" / "corpus.jsonl")
    write_lines(folder / "set" / "queries.jsonl", *({"_id": id, "text": t} for id, (t, _) in QUESTIONS.items()))
    rows = [f"{id}\t{document}\t1" for id, (_, document) in QUESTIONS.items()]
    write_lines(folder / "set" / "qrels" / "test.tsv", "query-id\tcorpus-id\tscore", *rows)
    return read_golden(folder / "set", PLACE)


def trec(folder: Path) -> GoldenSet:
    topics = write_lines(folder / "topics.tsv", *(f"{id}\t{text}" for id, (text, _) in QUESTIONS.items()))
    qrels = write_lines(folder / "set.qrels", *(f"{id} 0 {document} 1" for id, (_, document) in QUESTIONS.items()))
    return read_golden(qrels, PLACE, topics=topics, corpus=corpus(folder / "passages.jsonl"))


def squad(folder: Path) -> GoldenSet:
    articles: dict[str, list[Any]] = {}
    for passage in PASSAGES:
        asked = [{"id": id, "question": t, "answers": []} for id, (t, d) in QUESTIONS.items() if d == passage.id]
        context = f"{passage.title} [SEP] {passage.text}"
        articles.setdefault(passage.title, []).append({"context": context, "qas": asked})
    data = {"version": "1", "data": [{"title": title, "paragraphs": each} for title, each in articles.items()]}
    (folder / "set.json").write_text(json.dumps(data, ensure_ascii=False, indent=1), encoding="utf-8")
    return read_golden(folder / "set.json", PLACE)


@pytest.mark.parametrize("read", [own, beir, trec, squad])
def test_the_same_set_comes_out_of_every_format(read: Any, tmp_path: Path) -> None:
    golden = read(tmp_path)
    assert list(golden.passages) == PASSAGES
    assert list(golden.questions) == [
        GoldenQuestion(id=id, question=text, relevant={f"wiki/passages/{document}": 1})
        for id, (text, document) in QUESTIONS.items()
    ]
    assert golden.notes == ()
    assert golden.fingerprint() == own(tmp_path).fingerprint()


def test_grades_kinds_and_splits_of_our_lines(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "g.jsonl",
        {"id": "a", "question": "x", "kind": "concept", "split": "fit", "relevant": {"s/c/1": 3, "s/c/2/b": 0}},
        {"id": "b", "question": "y", "split": "held-out", "relevant": {"s/c/1": 1}},
    )
    assert [(q.id, q.kind, q.relevant) for q in read_golden(path, PLACE, split="fit").questions] == [
        ("a", "concept", {"s/c/1": 3, "s/c/2/b": 0})
    ]
    with pytest.raises(InvalidConfiguration, match="no questions of split 'test'"):
        read_golden(path, PLACE, split="test")


def test_questions_that_nothing_answers_are_left_out_and_said(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "g.jsonl",
        {"id": "a", "question": "x", "relevant": {"s/c/1": 0}},
        {"id": "b", "question": "y", "relevant": {"s/c/1": 1}},
    )
    golden = read_golden(path, PLACE)
    assert [q.id for q in golden.questions] == ["b"]
    assert golden.notes == ("1 questions without a relevant document were left out",)


def test_a_choice_of_questions_does_not_depend_on_their_order(tmp_path: Path) -> None:
    lines = [{"id": f"q{n}", "question": "x", "relevant": {"s/c/1": 1}} for n in range(50)]
    there = chosen(read_golden(write_lines(tmp_path / "a.jsonl", *lines), PLACE), most=10)
    back = chosen(read_golden(write_lines(tmp_path / "b.jsonl", *reversed(lines)), PLACE), most=10)
    assert {q.id for q in there.questions} == {q.id for q in back.questions} and len(there.questions) == 10
    assert "10 of 50 questions chosen" in there.notes


def test_topics_as_trec_wrote_them(tmp_path: Path) -> None:
    topics = tmp_path / "topics.txt"
    topics.write_text(
        "<top>\n<num> Number: 301\n<title> 国際 犯罪\n\n<desc> Description:\n何か\n</top>\n"
        "<top>\n<num> 302 </num>\n<title>\n小児麻痺\n</top>\n",
        encoding="utf-8",
    )
    qrels = write_lines(tmp_path / "x.qrels", "301 0 FT-1 2", "302 0 FT-2 -1", "302 0 FT-3 1")
    found = read_golden(qrels, PLACE, topics=topics).questions
    assert [(q.id, q.question) for q in found] == [("301", "国際 犯罪"), ("302", "小児麻痺")]
    assert found[1].relevant == {"wiki/passages/FT-2": 0, "wiki/passages/FT-3": 1}  # spam (-1) is not relevant


def test_squad_questions_without_an_answer_and_doubled_paragraphs(tmp_path: Path) -> None:
    paragraph = {"context": "同じ文。", "qas": [{"id": "1", "question": "何?"}]}
    again = {
        "context": "同じ文。",
        "qas": [{"id": "2", "question": "誰?", "is_impossible": True}, {"id": "3", "question": "?"}],
    }
    (tmp_path / "s.json").write_text(json.dumps([{"title": "t", "paragraphs": [paragraph, again]}]), encoding="utf-8")
    golden = read_golden(tmp_path / "s.json", PLACE)
    assert [p.id for p in golden.passages] == ["0-0"]
    assert {q.id: list(q.relevant) for q in golden.questions} == {
        "1": ["wiki/passages/0-0"],
        "3": ["wiki/passages/0-0"],
    }
    assert "1 questions that their paragraph does not answer" in golden.notes[0]


GOOD = '{"id": "a", "question": "x", "relevant": {"s/c/1": 1}}'


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "truncated"),
        ('{"id": "b", "question": "x"}', "missing required field `relevant`"),
        ('{"id": "b", "question": "x", "relevant": {"s/c/1": "high"}}', "Expected `int`"),
        ('{"id": "b", "question": "x", "relevant": {"s/c/1": 11}}', "grade 11 is above 10"),
        ('{"id": "b", "question": "x", "relevant": {"plain": 1}}', "'plain' is no document key"),
        ('{"id": "b", "question": " ", "relevant": {"s/c/1": 1}}', "question is empty"),
        (f'{{"id": "b", "question": "{"x" * 10_001}", "relevant": {{"s/c/1": 1}}}}', "10,001 characters"),
        (GOOD, "stands in line 1 already"),
        ('{"id": "", "question": "x", "relevant": {"s/c/1": 1}}', "an empty question id"),
    ],
)
def test_a_malformed_line_of_ours(line: str, reason: str, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "g.jsonl", GOOD, "", line)
    with pytest.raises(InvalidConfiguration) as caught:
        read_golden(path, PLACE)
    assert str(caught.value).startswith(f"{path}:3: ") and reason.lower() in str(caught.value).lower()


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("q1 d1 1", "1 columns, not 3"),
        ("q9\td1\t1", "no question 'q9'"),
        ("q1\td1\tgood", "'good' is no whole number"),
        ("q1\td1\t2", "another grade"),
    ],
)
def test_a_malformed_row_of_beir(row: str, reason: str, tmp_path: Path) -> None:
    write_lines(tmp_path / "queries.jsonl", {"_id": "q1", "text": "x"})
    qrels = write_lines(tmp_path / "qrels.tsv", "query-id\tcorpus-id\tscore", "q1\td1\t1", row)
    with pytest.raises(InvalidConfiguration) as caught:
        read_golden(tmp_path, PLACE)
    assert str(caught.value).startswith(f"{qrels}:3: ") and reason in str(caught.value)


@pytest.mark.parametrize(
    ("content", "where", "reason"),
    [
        ('[\n{"title": "t",\n]', "s.json:3: ", "property name"),
        ('{"data": [{"title": "t", "paragraphs": [{"qas": []}]}]}', "s.json:data[0].paragraphs[0]: ", "`context`"),
        ('{"version": 1}', "s.json:data: ", "array"),
    ],
)
def test_a_malformed_squad_file(content: str, where: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text(content, encoding="utf-8")
    with pytest.raises(InvalidConfiguration) as caught:
        read_golden(tmp_path / "s.json", PLACE)
    assert where in str(caught.value) and reason in str(caught.value)


def test_other_encodings_and_missing_files(tmp_path: Path) -> None:
    (tmp_path / "g.jsonl").write_bytes(GOOD.encode() + b"\n" + "日本".encode("cp932") + b"\n")
    with pytest.raises(InvalidConfiguration, match=r"g\.jsonl:2: not UTF-8"):
        read_golden(tmp_path / "g.jsonl", PLACE)
    with pytest.raises(InvalidConfiguration, match="cannot be read"):
        read_golden(tmp_path / "none.jsonl", PLACE)
    with pytest.raises(InvalidConfiguration, match="name the file of its topics"):
        read_golden(write_lines(tmp_path / "x.qrels", "1 0 a 1"), PLACE)
    with pytest.raises(InvalidConfiguration, match="cannot be told from its name"):
        read_golden(tmp_path / "x.bin", PLACE)
    with pytest.raises(InvalidConfiguration, match=r"qrels/test\.tsv"):
        write_lines(tmp_path / "queries.jsonl", {"_id": "q1", "text": "x"})
        read_golden(tmp_path, PLACE, form=Format.BEIR)
