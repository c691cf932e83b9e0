"""`shinsen eval` over a tiny corpus with stub models: a real server, configurations, reports, the gate."""

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from ops.connection import Unreachable
from ops.evaluation.formats import Place
from ops.evaluation.golden import GoldenQuestion, GoldenSet
from ops.evaluation.ranking import rank_all
from ops.evaluation.running import run_all
from tests.evaluation.test_formats import write_lines
from tests.ops.commands import Server, server, shinsen, shinsen_json

PASSAGES = {
    "1": ("軸受", "軸受の潤滑油を交換した。"),
    "2": ("ポンプ", "ポンプの圧力が下がった。"),
    "3": ("電源", "落雷で停電した。"),
    "4": ("塗装", "外壁の塗装がはがれた。"),
}
ASKED = {"q1": ("潤滑油の交換", "1", "keyword"), "q2": ("ポンプの圧力", "2", "keyword"), "q3": ("停電", "3", "short")}


@pytest.fixture(scope="module")
def beir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The set, as BEIR writes it."""
    folder = tmp_path_factory.mktemp("set") / "plant"
    write_lines(folder / "corpus.jsonl", *({"_id": k, "title": t, "text": b} for k, (t, b) in PASSAGES.items()))
    write_lines(folder / "queries.jsonl", *({"_id": k, "text": t, "kind": n} for k, (t, _, n) in ASKED.items()))
    write_lines(folder / "qrels.tsv", *(f"{k}\t{document}\t1" for k, (_, document, _) in ASKED.items()))
    return folder


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory, beir: Path) -> Iterator[Server]:
    """A real server that the command has loaded the set into."""
    with server(tmp_path_factory.mktemp("served") / "d") as served:
        loaded = shinsen("eval", beir, "--load", "--source", "demo", "--collection", "notes", "--url", served.url)
        assert loaded.exit_code == 0, loaded.output
        assert "4 passages loaded as demo/notes/" in loaded.output
        yield served


def asked(running: Server, beir: Path, *more: str | Path, code: int = 0) -> Any:
    place = ("--source", "demo", "--collection", "notes", "--url", running.url)
    return shinsen_json("eval", beir, *place, *more, code=code)


def test_weights_are_fitted_on_a_set_that_names_documents_by_id_only(
    running: Server, beir: Path, tmp_path: Path
) -> None:
    kept, place = tmp_path / "kept.json", ("--source", "demo", "--collection", "notes", "--url", running.url)
    assert shinsen("tune", beir, "--keep", kept, *place).exit_code == 0
    (found,) = json.loads(kept.read_text(encoding="utf-8"))
    assert [max(one["grades"]) for one in found["questions"]] == [1, 1, 1]


def test_a_set_is_loaded_and_measured_over_http(running: Server, beir: Path) -> None:
    found = asked(running, beir)["results"]
    assert (found["questions"], found["groups"], found["passages"]) == (3, 3, 4)
    (row,) = found["rows"]
    assert row["whole"]["estimates"]["nDCG@10"]["mean"] == 1.0
    assert {kind["name"]: kind["estimates"]["P@1"]["n"] for kind in row["kinds"]} == {"keyword": 2, "short": 1}
    assert row["profile"]["embedder"].startswith("stub") and row["seconds"] > 0


def test_loading_twice_changes_nothing(running: Server, beir: Path) -> None:
    found = asked(running, beir, "--load")["results"]
    assert found["notes"] == ["4 passages loaded as demo/notes/…"]
    assert found["rows"][0]["whole"]["estimates"]["nDCG@10"]["mean"] == 1.0


def test_other_documents_of_the_collection_are_told(running: Server, beir: Path) -> None:
    event = {"source": "demo", "collection": "notes", "key": "x", "occurred_at": "2026-01-01T00:00:00Z"}
    running.post(event | {"record": {"title": "別", "body": "別の文書。"}})
    assert "holds 1 other documents" in asked(running, beir, "--load")["results"]["notes"][0]


def test_a_profile_without_the_set_is_told_from_one_that_finds_nothing(running: Server, beir: Path) -> None:
    result = shinsen("eval", beir, "--url", running.url)
    assert result.exit_code == 4 and "load the set with --load" in result.output


def test_the_gate_ends_with_exit_code_1_and_says_by_how_much(running: Server, beir: Path) -> None:
    place = ("--source", "demo", "--collection", "notes", "--url", running.url)
    reached = shinsen("eval", beir, *place, "--bar", "ndcg@10=1", "--bar", "keyword:P@1=.9")
    assert reached.exit_code == 0, reached.output
    missed = shinsen("eval", beir, *place, "--bar", "P@5=.5", "--bar", "mrr=.9")
    assert missed.exit_code == 1
    said = " ".join(missed.output.split())
    assert (
        "P@5 is 0.2000 (0.2000 to 0.2000), n = 3, below the bar of 0.5" in said and "MRR" not in said.split("error:")[1]
    )


@pytest.mark.parametrize(
    ("bar", "reason"), [("ndcg@10", "is no bar"), ("ndcg@10=2", "is no bar"), ("f1=.3", "no measure")]
)
def test_what_is_no_bar_is_wrong_usage(bar: str, reason: str, running: Server, beir: Path) -> None:
    result = shinsen("eval", beir, "--url", running.url, "--bar", bar)
    assert result.exit_code == 2 and reason in result.output


def test_a_bar_for_a_kind_that_nobody_asked_is_wrong_usage(running: Server, beir: Path) -> None:
    place = ("--source", "demo", "--collection", "notes", "--url", running.url)
    result = shinsen("eval", beir, *place, "--bar", "riddle:P@1=.5")
    assert result.exit_code == 2 and "no question is of kind 'riddle'" in result.output


def test_documents_that_are_not_there_are_named(running: Server, beir: Path, tmp_path: Path) -> None:
    grades = {"demo/notes/1": 2, "demo/notes/2/old": 1, "demo/notes/8": 1, "demo/notes/9": 0}
    golden = write_lines(tmp_path / "g.jsonl", {"id": "a", "question": "潤滑油の交換", "relevant": grades})
    (note,) = shinsen_json("eval", golden, "--url", running.url)["results"]["notes"]
    assert note == (
        "2 documents of the set are not there, or not for this asker, and count as not found: "
        "demo/notes/2/old, demo/notes/8"
    )
    assert not asked(running, beir)["results"]["notes"]


class Backwards:
    """An engine that ranks by the order of the corpus, from its end."""

    def __init__(self, keys: list[str]) -> None:
        self._keys = keys

    async def rank(self, question: GoldenQuestion) -> list[str]:
        assert question.relevant
        return self._keys[::-1]


@asynccontextmanager
async def backwards(golden: GoldenSet, options: Mapping[str, Any], place: Place) -> Any:
    yield Backwards([place.key(p.id) for p in golden.passages][options.get("skip", 0) :])


FILE = """
baseline: as it runs
configurations:
  - name: as it runs
  - name: words alone
    search: {alpha: 0.0}
  - name: no vectors
    settings: {SHINSEN_EMBEDDER: none}
  - name: backwards
    engine: tests.evaluation.test_command:backwards
    options: {skip: 1}
"""


def test_configurations_in_one_table_with_paired_tests(running: Server, beir: Path, tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(FILE, encoding="utf-8")
    folder = ("--folder", tmp_path / "own", "--report", tmp_path / "r" / "table.md")
    found = asked(running, beir, "--configurations", file, *folder)["results"]
    assert [row["name"] for row in found["rows"]] == ["as it runs", "words alone", "no vectors", "backwards"]
    base, words, plain, engine = found["rows"]
    assert base["against"] == {} and plain["profile"]["embedder"] == ""
    assert words["against"]["nDCG@10"]["difference"]["n"] == 3
    # The engine leaves out passage 1 and ranks 4, 3, 2: reciprocal ranks 0, 1/3 and 1/2.
    assert engine["whole"]["estimates"]["MRR"]["mean"] == pytest.approx((0 + 1 / 3 + 1 / 2) / 3)
    assert engine["against"]["nDCG@10"]["worse"] == 3 and engine["adjusted_p"] >= engine["against"]["nDCG@10"]["p"]
    assert [miss["id"] for miss in engine["worst"]] == ["q1", "q2", "q3"] or engine["worst"][0]["id"] == "q1"
    reports = sorted(path.name for path in (tmp_path / "r").iterdir())
    assert reports == ["table.html", "table.md"]

    again = asked(running, beir, "--configurations", file, "--baseline", "no vectors", *folder[:2])["results"]
    assert again["baseline"] == "no vectors"
    assert again["rows"][0]["against"]["nDCG@10"]["difference"]["n"] == 3


def test_settings_of_their_own_share_one_cache_and_keep_their_index(beir: Path, tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    mapping = 'source: eval\ncollection: passages\ntitle: "%s"\nbody: ["{body}"]\n'
    mapping += "updated_at: updated_at\nacl: {default: [public]}\n"
    write_lines(tmp_path / "maps" / "passages.yaml", mapping % "{title}")
    file.write_text(
        "configurations:\n  - name: a\n    settings: {max_chunks: 50}\n  - name: b\n    settings: {mappings: maps}\n",
        encoding="utf-8",
    )
    options = ("--configurations", file, "--folder", tmp_path / "own", "--data", tmp_path / "none")
    first = shinsen_json("eval", beir, *options)["results"]
    made = sorted(path.name for path in (tmp_path / "own").iterdir())
    assert "cache.db" in made and sum(1 for name in made if len(name) == 16) == 2
    assert not any((tmp_path / "own").glob("*/cache.db"))

    # A file that was changed holds for the next run, though the folder is there already.
    write_lines(tmp_path / "maps" / "passages.yaml", mapping % "報告 {title}")
    again = shinsen_json("eval", beir, *options)["results"]
    assert sorted(path.name for path in (tmp_path / "own").iterdir()) == made
    before, after = (found["rows"][1]["profile"]["mappings"] for found in (first, again))
    assert before != after


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("configurations: []", 1, "1 to 100 configurations"),
        ("configurations:\n  - name: a\n  - name: a\n", 3, "given twice"),
        ("configurations:\n  - name: a\n    search: {alpha: 2}\n", 3, "<= 1"),
        ("configurations:\n  - name: a\n    search: {query: x}\n", 3, "sets this member itself"),
        ("configurations:\n  - name: a\n    settings: {no_such: 1}\n", 3, "is no setting"),
        ("configurations:\n  - name: a\n    settings: {embedder: other}\n", 3, "EMBEDDER"),
        ("configurations:\n  - name: a\n    engine: x:y\n    search: {alpha: 0}\n", 3, "neither search nor settings"),
        ("configurations:\n  - name: a\nbaseline: b\n", 3, "no configuration 'b'"),
        ("configurations:\n  - nam: a\n", 2, "nam"),
        ("configurations: [", 1, ""),
    ],
)
def test_a_malformed_file_of_configurations(text: str, line: int, reason: str, beir: Path, tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(text, encoding="utf-8")
    result = shinsen("eval", beir, "--configurations", file, "--data", tmp_path)
    assert result.exit_code == 2, result.output
    said = "".join(result.output.split())
    assert f"c.yaml:{line}:" in said and "".join(reason.split()) in said


def test_an_engine_that_is_not_there(beir: Path, tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text("configurations:\n  - name: a\n    engine: tests.evaluation:none\n", encoding="utf-8")
    result = shinsen("eval", beir, "--configurations", file)
    assert result.exit_code == 2 and "tests.evaluation:none" in result.output


def test_the_reports(running: Server, beir: Path, tmp_path: Path) -> None:
    asked(running, beir, "--report", tmp_path / "plain", "--measure", "P@5")
    asked(running, beir, "--report", tmp_path / "words", "--measure", "P@5", "--texts", "--seed", "7")
    plain, words = ((tmp_path / f"{name}.md").read_text(encoding="utf-8") for name in ("plain", "words"))
    for said in ("n = 3 questions", "| q1 |", "seed", "commit", "ir-measures 0.", "stub-embedder", "Smucker"):
        assert said in plain
    assert "潤滑油の交換" not in plain and "潤滑油の交換" in words and "seed 7" in words
    page = (tmp_path / "words.html").read_text(encoding="utf-8")
    assert "<script" not in page and not re.search(r'(src|href)="', page) and "潤滑油の交換" in page
    pictures = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    assert pictures and all(ElementTree.fromstring(svg).tag.endswith("svg") for svg in pictures)


def test_a_report_that_cannot_be_written_is_told_before_the_questions_are_asked(beir: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    result = shinsen("eval", beir, "--report", tmp_path / "file" / "r", "--url", "http://127.0.0.1:9")
    assert result.exit_code == 2 and "cannot be written" in result.output  # not 3: nobody was asked


def test_figures_are_shown_when_the_report_cannot_be_written_any_more(
    running: Server, beir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "r"

    async def gone(*arguments: Any) -> Any:
        found = await run_all(*arguments)
        shutil.rmtree(folder)
        return found

    monkeypatch.setattr("ops.evaluation.plan.run_all", gone)
    found = asked(running, beir, "--report", folder / "x", code=1)
    assert found["results"]["rows"][0]["whole"]["estimates"]["MRR"]["mean"] == 1.0
    assert "could not be written" in found["missed"][0] and found["files"] == []


def test_what_stands_in_a_set_is_never_markup(tmp_path: Path, running: Server) -> None:
    nasty = '<img src=x onerror="alert(1)"> | ` [b]'
    line = {"id": nasty, "question": nasty, "kind": nasty, "relevant": {"demo/notes/1": 1}}
    set_file = write_lines(tmp_path / "g.jsonl", line, line | {"id": "b", "kind": "plain"})
    shinsen_json("eval", set_file, "--url", running.url, "--report", tmp_path / "r", "--texts")
    assert "<img" not in (tmp_path / "r.html").read_text(encoding="utf-8")
    rows = [row for row in (tmp_path / "r.md").read_text(encoding="utf-8").splitlines() if "onerror" in row]
    assert rows and all("\\<img" in row and "\\|" in row for row in rows)
    assert shinsen("eval", set_file, "--url", running.url).exit_code == 0


def test_groups_of_the_asker_are_kept(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    write_lines(folder / "corpus.jsonl", {"_id": "1", "title": "軸受", "text": "軸受の油。"})
    write_lines(folder / "queries.jsonl", {"_id": "q", "text": "軸受の油"})
    write_lines(folder / "qrels.tsv", "q\t1\t1")
    found = shinsen_json("eval", folder, "--load", "--data", tmp_path / "d", "--groups", "nobody")["results"]
    assert found["rows"][0]["whole"]["estimates"]["MRR"]["mean"] == 1.0  # what everybody may read
    assert json.dumps(found)


async def test_what_stops_one_question_is_told_as_it_is() -> None:
    class Away:
        async def rank(self, question: GoldenQuestion) -> list[str]:
            raise Unreachable("http://127.0.0.1:9 does not answer")

    golden = [GoldenQuestion(id=str(n), question="x", relevant={"a/b/c": 1}) for n in range(9)]
    with pytest.raises(Unreachable, match="does not answer"):
        await rank_all(Away(), golden)
