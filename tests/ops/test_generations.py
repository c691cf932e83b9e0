"""Rebuilds by command over the real embedded runtime with stub models: new, compare, promote, rollback, prune, live."""

import json
from pathlib import Path

import pytest

from tests.ops.commands import native, shinsen, shinsen_json, write_events

FAILED, USAGE, NOT_FOUND, REFUSED = 1, 2, 4, 5
TEXTS = {
    "MR-1": "F-17の駐車ブレーキが摩耗していた。",
    "MR-2": "K-08のワイヤロープを交換した。",
    "MR-3": "Q-42を点検した。",
}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data folder with three documents."""
    events = write_events(tmp_path / "events.jsonl", *(native(key, text) for key, text in TEXTS.items()))
    shinsen_json("publish", events, "--data", tmp_path / "data")
    return tmp_path / "data"


def states(data: Path) -> dict[str, str]:
    found = shinsen_json("generations", "--data", data)
    return {g["name"]: g["state"] for g in found["generations"]}


def test_a_new_generation_is_built_compared_promoted_rolled_back_and_pruned(data: Path, tmp_path: Path) -> None:
    digest = shinsen_json("digest", "--data", data)
    built = shinsen_json("replay", "--into", "new", "--data", data)
    assert built == {"generation": "g2", "resumed": False, "documents": 3,
                     "phase": "complete", "records": 3, "done": 3, "filled": 0}  # fmt: skip
    assert states(data) == {"g1": "live", "g2": "building"}

    questions = write_events(tmp_path / "questions.jsonl", {"question": "F-17の摩耗"}, {"question": "ワイヤロープ"})
    same = shinsen_json("compare", "g1", "g2", "--questions", questions, "--data", data)
    assert same["exact"] and (same["comparison"]["chunks"], same["comparison"]["facts"]) == ({}, {})
    assert (same["rankings"]["questions"], same["rankings"]["overlap"], same["rankings"]["changed"]) == (2, 1.0, [])

    assert shinsen_json("promote", "g2", "--data", data)["replaced"] == "g1"
    more = write_events(tmp_path / "more.jsonl", native("MR-4", "新しい記録。"), native("MR-1", "直した。", 2))
    shinsen_json("publish", more, "--data", data)
    changed = shinsen_json("digest", "--data", data)
    assert changed != digest
    assert shinsen_json("rollback", "--data", data)["generation"] == "g1"
    assert shinsen_json("digest", "--data", data) == changed, "the retired one followed all changes"
    assert states(data) == {"g1": "live", "g2": "retired"}

    assert shinsen_json("prune", "--data", data) == {"pruned": ["g2"]}
    assert states(data) == {"g1": "live"}
    assert shinsen_json("replay", "--into", "new", "--data", data)["generation"] == "g3", "names are not given twice"


def test_another_mapping_is_compared_and_its_differences_are_classified(data: Path, tmp_path: Path) -> None:
    (tmp_path / "mappings").mkdir()
    (tmp_path / "mappings" / "orders.yaml").write_text(
        "source: cmms\ncollection: work_orders\ntype: WorkOrder\ntitle: '{title}'\nbody: ['作業: {body}']\n"
        "acl: {column: acl, default: [workshop]}\n",
        encoding="utf-8",
    )
    env = {"SHINSEN_MAPPINGS": str(tmp_path / "mappings")}
    result = shinsen("replay", "--into", "new", "--data", data, "--json", env=env)
    assert result.exit_code == 0, result.output
    compared = shinsen("compare", "g1", "g2", "--data", data, "--json", env=env)
    assert compared.exit_code == FAILED, "a mapping that changes access and types is to be looked at"
    found = json.loads(compared.stdout)["comparison"]
    assert found["records"]["access"]["count"] == found["records"]["type"]["count"] == 3
    assert found["chunks"]["only in g1"]["count"] == found["chunks"]["only in g2"]["count"] == 3


def test_other_models_and_patterns_differ_in_chunks_and_facts_only(data: Path, tmp_path: Path) -> None:
    pattern = "{name: wears, predicate: wears, pattern: '(?P<subject>{id})の(?P<object>{noun})が摩耗'}"
    (tmp_path / "patterns.yaml").write_text(f"facts:\n  - {pattern}\n", encoding="utf-8")
    env = {"SHINSEN_PATTERNS": str(tmp_path / "patterns.yaml"), "SHINSEN_EMBEDDER": "none"}
    refused = shinsen("replay", "--into", "live", "--data", data, env=env)
    assert refused.exit_code == REFUSED and "--into new" in refused.stderr
    result = shinsen("replay", "--into", "new", "--data", data, "--json", env=env)
    assert result.exit_code == 0, result.output
    questions = write_events(tmp_path / "questions.jsonl", {"question": "F-17の摩耗"})
    compared = shinsen("compare", "g1", "g2", "--questions", questions, "--data", data, "--json", env=env)
    assert compared.exit_code == 0, compared.output
    found = json.loads(compared.stdout)
    assert (found["exact"], found["comparison"]["documents"]) == (True, 3)
    assert found["comparison"]["chunks"] == {
        "vector missing in g2": {"count": 3, "examples": [f"cmms/work_orders/MR-{n}" for n in (1, 2, 3)]}
    }
    read = {"count": 1, "examples": ["cmms/work_orders/MR-1"]}
    assert found["comparison"]["facts"] == {"only in g2: wears": read, "only in g2: label": read}
    assert found["rankings"]["notes"], "g1 is asked without its vectors, and that is said"
    shown = shinsen("compare", "g1", "g2", "--data", data, env=env).stdout
    assert "only in g2: wears" in shown and "vector missing in g2" in shown


def test_a_trial_of_one_collection_is_not_promoted_before_it_is_filled(data: Path, tmp_path: Path) -> None:
    other = {**native("9", "別の収集。"), "collection": "notes"}
    shinsen_json("publish", write_events(tmp_path / "other.jsonl", other), "--data", data)
    trial = shinsen_json("replay", "--into", "new", "--collection", "cmms/notes", "--data", data)
    assert (trial["phase"], trial["done"], trial["records"]) == ("partial", 1, 4)
    assert shinsen_json("compare", "g1", "g2", "--collection", "cmms/notes", "--data", data)["exact"]
    refused = shinsen("promote", "g2", "--data", data)
    assert refused.exit_code == REFUSED
    assert "partial" in refused.stderr and "without --collection" in refused.stderr
    filled = shinsen_json("replay", "--into", "new", "--data", data)
    assert (filled["generation"], filled["resumed"], filled["phase"], filled["done"]) == ("g2", True, "complete", 4)
    assert shinsen_json("promote", "g2", "--data", data)["generation"] == "g2"


@pytest.mark.parametrize(
    ("chosen", "number"),
    [
        ((), 3),
        (("--collection", "cmms/work_orders"), 3),
        (("--document", "cmms/work_orders/MR-2"), 1),
        (("--holding", "ワイヤロープ"), 1),
        (("--from", "log:0:3"), 1),
        (("--from", "2000-01-01T00:00:00Z"), 3),
        (("--from", "2999-01-01T00:00:00+09:00"), 0),
    ],
    ids=str,
)
def test_documents_are_done_again_in_the_live_generation(data: Path, chosen: tuple[str, ...], number: int) -> None:
    digest = shinsen_json("digest", "--data", data)
    done = shinsen_json("replay", "--into", "live", *chosen, "--data", data)
    assert (done["generation"], done["documents"]) == ("g1", number)
    assert shinsen_json("digest", "--data", data) == digest


def test_another_mapping_of_some_documents_only_counts_as_current(data: Path, tmp_path: Path) -> None:
    pattern = "{name: wears, predicate: wears, pattern: '(?P<subject>{id})の(?P<object>{noun})が摩耗'}"
    (tmp_path / "patterns.yaml").write_text(f"facts:\n  - {pattern}\n", encoding="utf-8")
    env = {"SHINSEN_PATTERNS": str(tmp_path / "patterns.yaml")}
    outdated = json.loads(shinsen("status", "--data", data, "--json", env=env).stdout)["outdated"]
    done = shinsen("replay", "--into", "live", "--holding", "摩耗", "--current", "--data", data, "--json", env=env)
    assert json.loads(done.stdout)["documents"] == 1, done.output
    after = json.loads(shinsen("status", "--data", data, "--json", env=env).stdout)["outdated"]
    assert (outdated, after) == (["patterns"], [])


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("replay", "--into", "new", "--from", "yesterday"), REFUSED, "beginning"),
        (("replay", "--into", "new", "--from", "2025-07-08T09:00:00Z"), REFUSED, "from the records"),
        (("replay", "--into", "live", "--from", "records:0:0"), REFUSED, "log:0"),
        (("replay", "--into", "live", "--from", "log:0:99"), REFUSED, "1 to 3"),
        (("replay", "--into", "live", "--collection", "erp/none"), NOT_FOUND, "cmms/work_orders"),
        (("replay", "--into", "live", "--document", "cmms/work_orders/none"), NOT_FOUND, "none"),
        (("replay", "--collection", "cmms/work_orders"), REFUSED, "holds all"),
        (("replay", "--holding", "摩耗"), REFUSED, "into live"),
        (("promote", "g9"), NOT_FOUND, "there are: g1"),
        (("rollback",), REFUSED, "no generation to go back to"),
        (("prune", "g1"), REFUSED, "promote another"),
        (("compare", "g1", "g7"), NOT_FOUND, "g7"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_cannot_be_done_says_why(data: Path, arguments: tuple[str, ...], code: int, said: str) -> None:
    result = shinsen(*arguments, "--data", data)
    assert result.exit_code == code, result.output
    assert said in result.stderr.replace("\n", " ")
    assert states(data) == {"g1": "live"}
