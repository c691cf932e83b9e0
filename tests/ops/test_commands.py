"""The commands over the real embedded runtime with stub models: what they print, and their exit codes."""

import json
from pathlib import Path

import jsonschema  # type: ignore[import-untyped]
import pytest

from schemas.freshness import encode_token
from schemas.outcome import TokenPart
from tests.ops.commands import native, shinsen, shinsen_json, write_events

OK, FAILED, USAGE, UNAVAILABLE, NOT_FOUND, REFUSED, NOT_FRESH = range(7)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with three records and one refused line."""
    folder = tmp_path_factory.mktemp("filled")
    events = write_events(
        folder / "events.jsonl",
        native("MR-1", "F-17の駐車ブレーキのライニングが摩耗していた。"),
        native("MR-2", "K-08のワイヤロープを交換した。"),
        "{broken",
        native("MR-3", "F-17の事故原因は駐車ブレーキの摩耗である。"),
    )
    report = shinsen_json("publish", events, "--data", folder / "data", code=REFUSED)
    assert (report["accepted"], report["waited"], report["dead_letters"]) == (3, True, [])
    refused = report["rejected"][0]
    assert refused["where"] == f"{events}:3"
    assert refused["code"] == "not_json"
    return folder / "data"


def test_help_lists_the_commands_and_the_exit_codes() -> None:
    result = shinsen("--help")
    assert result.exit_code == OK
    commands = ["run", "publish", "ask", "search", "sparql", "status", "replay", "digest", "dlq", "doctor", "schema"]
    commands += ["analyze"]
    assert [name for name in commands if name not in result.output] == []
    assert "Exit codes" in result.output


def test_ask_answers_with_citations(data: Path) -> None:
    answer = shinsen_json("ask", "F-17の事故原因は何か。", "--data", data)
    assert {"question", "answer", "route", "evidence", "freshness", "usage", "timings_ms", "warnings"} <= set(answer)
    assert "cmms/work_orders/MR-3" in [piece["document"]["key"] for piece in answer["evidence"]]
    shown = shinsen("ask", "F-17の事故原因は何か。", "--data", data)
    assert shown.exit_code == OK
    assert "cmms/work_orders/MR-3" in shown.stdout
    assert "Freshness" in shown.stdout


def test_search_finds_and_filters(data: Path) -> None:
    found = shinsen_json("search", "ワイヤロープ", "--data", data)
    assert found["hits"][0]["document"]["key"] == "cmms/work_orders/MR-2"
    none = shinsen_json("search", "ワイヤロープ", "--filters", '{"source": ["erp"]}', "--data", data)
    assert none["hits"] == []
    assert "MR-2" in shinsen("search", "ワイヤロープ", "--data", data).stdout


@pytest.mark.parametrize(
    ("form", "expected"), [("table", "yes"), ("json", '"boolean"'), ("csv", "true")], ids=["table", "json", "csv"]
)
def test_sparql_in_each_form(data: Path, form: str, expected: str) -> None:
    result = shinsen("sparql", "ASK { ?s ?p ?o }", "--format", form, "--data", data)
    assert result.exit_code == OK, result.output
    assert expected in result.stdout


def test_sparql_reads_standard_input_and_files(data: Path, tmp_path: Path) -> None:
    query = "SELECT (COUNT(*) AS ?n) WHERE { ?s ?p ?o }"
    piped = shinsen("sparql", "-", "--json", "--data", data, stdin=query)
    (tmp_path / "query.rq").write_text(query)
    filed = shinsen("sparql", "--file", tmp_path / "query.rq", "--json", "--data", data)
    assert json.loads(piped.stdout) == json.loads(filed.stdout)


def test_status_digest_and_replay(data: Path) -> None:
    status = shinsen_json("status", "--data", data)
    assert status["counts"]["documents"] == 3
    assert status["pending"] == {"documents": 0, "text": 0, "relinks": 0}
    before = shinsen_json("digest", "--data", data)
    assert shinsen_json("digest", "--data", data) == before
    assert "all" in before
    done = shinsen_json("replay", "--data", data)
    assert done["documents"] == 3
    assert shinsen_json("digest", "--data", data) == before
    assert done["generation"] in shinsen("status", "--data", data).stdout


def test_dead_letters_are_listed_shown_and_tried_again(data: Path) -> None:
    (letter,) = shinsen_json("dlq", "list", "--data", data, code=REFUSED)
    assert letter["code"] == "not_json"
    whole = shinsen_json("dlq", "show", letter["id"], "--data", data)
    assert whole["payload"] == "{broken"
    done = shinsen_json("dlq", "retry", "--all", "--data", data, code=REFUSED)
    assert done[letter["id"]].startswith("rejected again")
    assert letter["id"] in shinsen("dlq", "list", "--data", data).stdout


def test_what_is_not_there_is_said(data: Path, tmp_path: Path) -> None:
    assert shinsen("dlq", "show", "nothing", "--data", data).exit_code == NOT_FOUND
    nowhere = shinsen("ask", "F-17", "--data", tmp_path / "nowhere")
    assert nowhere.exit_code == NOT_FOUND
    assert "shinsen publish" in nowhere.stderr
    assert not (tmp_path / "nowhere").exists(), "asking makes no folder"


@pytest.mark.parametrize(
    "arguments",
    [
        ("ask", "q", "--url", "http://127.0.0.1:1", "--data", "x"),
        ("ask", "q", "--filters", "{"),
        ("ask",),
        ("sparql",),
        ("dlq", "retry"),
        ("publish", "no-such-file.jsonl"),
        ("publish", "pyproject.toml"),
        ("publish", "ops/demo/sources/06_hr_staff.csv"),
        ("status", "--watch", "--every", "0"),
    ],
    ids=lambda arguments: " ".join(arguments)[:40],
)
def test_wrong_usage(arguments: tuple[str, ...]) -> None:
    result = shinsen(*arguments)
    assert result.exit_code == USAGE, result.output
    assert "Traceback" not in result.output


def test_wrong_settings_name_the_variable() -> None:
    result = shinsen("status", env={"SHINSEN_PORT": "many"})
    assert result.exit_code == USAGE
    assert "SHINSEN_PORT" in result.stderr


def test_nobody_answers() -> None:
    result = shinsen("status", "--url", "http://127.0.0.1:9")
    assert result.exit_code == UNAVAILABLE
    assert "shinsen run" in result.stderr


def test_refused_input(data: Path) -> None:
    for arguments in (
        ["sparql", "DELETE WHERE { ?s ?p ?o }"],
        ["sparql", "SELECT"],
        ["ask", "q", "--filters", '{"unknown": 1}'],
        ["ask", "q", "--min-freshness", "nonsense"],
    ):
        result = shinsen(*arguments, "--data", data)
        assert result.exit_code == REFUSED, (arguments, result.output)
        assert result.stderr.startswith("error:")


def test_a_token_that_is_not_reached(data: Path) -> None:
    token = encode_token([TokenPart("cmms/work_orders/MR-9", "~")])
    result = shinsen("ask", "q", "--min-freshness", token, "--wait", "50ms", "--data", data)
    assert result.exit_code == NOT_FRESH


def test_groups_limit_what_is_seen(tmp_path: Path) -> None:
    events = write_events(tmp_path / "e.jsonl", native("MR-5", "秘密の記録。", acl=["legal", "法務部"]))
    assert shinsen("publish", events, "--data", tmp_path / "d").exit_code == OK
    for groups, number in (("legal", 1), ("sales", 0), ("営業部", 0), ("営業部,法務部", 1), ("*", 1)):
        found = shinsen_json("search", "秘密の記録", "--groups", groups, "--data", tmp_path / "d")
        assert len(found["hits"]) == number, groups


def test_the_event_schema_holds_for_the_demos_events() -> None:
    schema = json.loads(shinsen("schema", "event").stdout)
    events = (Path(__file__).parents[2] / "ops/demo/sources/04_helpdesk_tickets.jsonl").read_text(encoding="utf-8")
    validator = jsonschema.Draft202012Validator(schema)
    assert [error.message for line in events.splitlines() for error in validator.iter_errors(json.loads(line))] == []
    assert not validator.is_valid({"source": "s"})


def test_the_asyncapi_document_names_both_channels() -> None:
    document = json.loads(shinsen("schema", "asyncapi").stdout)
    assert {"events", "outcomes"} <= set(document["channels"])
    assert "NativeEvent" in document["components"]["schemas"]


def test_doctor_finds_nothing_wrong(data: Path) -> None:
    findings = shinsen_json("doctor", "--no-models", "--port", "0", "--data", data)
    states = {finding["name"]: finding["state"] for finding in findings}
    assert states["indexes"] == states["versions"] == states["mappings"] == "ok"
    assert states["dead letters"] == "warning"


def test_doctor_names_the_line_of_a_wrong_mapping(tmp_path: Path) -> None:
    (tmp_path / "m.yaml").write_text("source: a\ncollection: b\nbody: [x]\nnonsense: 1\n")
    findings = shinsen("doctor", "--no-models", "--json", "--data", tmp_path, env={"SHINSEN_MAPPINGS": str(tmp_path)})
    assert findings.exit_code == FAILED
    wrong = next(finding for finding in json.loads(findings.stdout) if finding["state"] == "failure")
    assert wrong["name"] == "mappings"
    assert "m.yaml" in wrong["found"]
