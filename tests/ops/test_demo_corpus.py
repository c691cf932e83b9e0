"""The demo corpus is whole: its files parse, its keys exist, the F-17 case is laid out as its README says."""

import base64
import csv
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

DEMO = Path(__file__).parents[2] / "ops" / "demo"
DOCUMENTS = DEMO / "sources" / "dms" / "documents"
TABLE_KEYS = {"equipment": "equipment_no", "work_orders": "work_order_no"}
KINDS = {"identifier", "proper_noun", "sentence", "concept", "compound", "keyword"}
CHECKS = {"search", "ask", "document", "outcome", "entity_absent", "entity_present"}
OUTCOMES = {"applied", "duplicate", "superseded", "dead_letter"}

Json = dict[str, Any]


def load_yaml(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def jsonl(path: Path) -> list[Json]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def identify(event: Json) -> tuple[str, bool]:
    """The document key of a raw event of any envelope, and whether it deletes."""
    if "specversion" in event:
        return f"{event['source']}/{event['subject']}", event["type"].endswith(".deleted")
    payload = event.get("payload", event)
    if isinstance(payload.get("source"), dict):
        table = payload["source"]["table"]
        row = payload["after"] or payload["before"]
        return f"{payload['source']['name']}/{table}/{row[TABLE_KEYS[table]]}", payload["op"] == "d"
    return f"{event['source']}/{event['collection']}/{event['key']}", event["op"] == "delete"


def front_matter(path: Path) -> tuple[Json, str]:
    start, head, body = path.read_text(encoding="utf-8").split("---\n", 2)
    assert start == ""
    return yaml.safe_load(head), body


def staff() -> list[dict[str, str]]:
    text = (DEMO / "sources" / "06_hr_staff.csv").read_bytes().decode("cp932")
    return list(csv.DictReader(io.StringIO(text)))


def files(kind: str) -> Iterator[tuple[Path, Json]]:
    for entry in load_yaml(DEMO / "manifest.yaml")["files"]:
        if entry["format"] == kind:
            yield DEMO / entry["path"], entry


def loaded() -> tuple[set[str], set[str]]:
    """Keys of all records that were ever loaded, and of those alive at the end of loading."""
    ever: set[str] = set()
    live: set[str] = set()
    for path, _ in files("events-jsonl"):
        for event in jsonl(path):
            key, deletes = identify(event)
            ever.add(key)
            (live.discard if deletes else live.add)(key)
    names = [f"dms/documents/{path.stem}" for path in DOCUMENTS.glob("*.md")]
    names += [f"hr/staff/{row['社員番号']}" for row in staff()]
    return ever | set(names), live | set(names)


def steps() -> list[Json]:
    return list(load_yaml(DEMO / "changes.yaml")["steps"])


def named_columns(mapping: Json) -> set[str]:
    """Every column a mapping refers to, the narrower ones included."""
    templates = [mapping["title"]]
    for part in mapping["body"]:
        templates.append(part if isinstance(part, str) else part.get("template", f"{{{part.get('column')}}}"))
    found = {name for template in templates for name in re.findall(r"\{(\w+)\}", template)}
    found |= set(mapping["key"])
    found |= {spec.get("column", name) for name, spec in mapping["fields"].items()}
    for fact in mapping["facts"]:
        found.add((fact.get("object") or fact["literal"])["column"])
    return found


def test_counts_per_system() -> None:
    _, live = loaded()
    counts: dict[str, int] = {}
    for key in live:
        collection = key.rsplit("/", 1)[0]
        counts[collection] = counts.get(collection, 0) + 1
    assert counts == {
        "erp/equipment": 21,
        "cmms/work_orders": 19,
        "dms/documents": 22,
        "ringi/approvals": 16,
        "helpdesk/tickets": 16,
        "helpdesk/faq": 4,
        "hr/staff": 17,
    }


def test_every_events_line_belongs_to_its_file() -> None:
    for path, entry in files("events-jsonl"):
        for event in jsonl(path):
            key, _ = identify(event)
            assert key.startswith(f"{entry['source']}/{entry['collection']}/"), (path.name, key)


def test_ledger_mixes_bare_and_schema_envelopes_and_encodes_prices() -> None:
    events = jsonl(DEMO / "sources" / "01_erp_equipment.jsonl")
    assert {"payload" in event for event in events} == {True, False}
    payloads = [event.get("payload", event) for event in events]
    assert {payload["op"] for payload in payloads} == {"r", "c", "u", "d"}
    f17 = next(p["after"] for p in payloads if p["after"] and p["after"]["equipment_no"] == "F-17")
    assert int.from_bytes(base64.b64decode(f17["purchase_price"]), "big", signed=True) == 248_000_000
    assert isinstance(f17["installed_on"], int)


def test_positions_of_one_key_rise_in_the_initial_load() -> None:
    for name in ("01_erp_equipment.jsonl", "02_cmms_work_orders.jsonl", "04_helpdesk_tickets.jsonl"):
        newest: dict[str, int] = {}
        for event in jsonl(DEMO / "sources" / name):
            key, _ = identify(event)
            payload = event.get("payload", event)
            position = payload["position"] if "position" in payload else payload["source"]["lsn"]
            assert position > newest.get(key, -1), key
            newest[key] = position


@pytest.mark.parametrize("path", sorted(DOCUMENTS.glob("*.md")), ids=lambda path: path.stem)
def test_document_front_matter(path: Path) -> None:
    head, body = front_matter(path)
    columns = set(load_yaml(DEMO / "mappings" / "dms_documents.yaml")["columns"]) | {"acl"}
    assert set(head) == columns - {"body", "path"}
    assert head["key"] == path.stem
    assert f"v:{head['type']} a owl:Class" in (DEMO / "ontology.ttl").read_text(encoding="utf-8")
    assert isinstance(head["updated_at"], str) and head["updated_at"].endswith("+09:00")
    assert isinstance(head["acl"], list) and head["acl"]
    assert body.strip()


def test_several_documents_are_long() -> None:
    assert sum(len(front_matter(path)[1]) >= 1_200 for path in DOCUMENTS.glob("*.md")) >= 5


def test_the_safety_manual_never_names_the_forklift() -> None:
    text = (DOCUMENTS / "SM-210.md").read_text(encoding="utf-8")
    for word in ("F-17", "17号車", "17号", "赤リフト", "事故", "原因"):
        assert word not in text, word
    head, body = front_matter(DOCUMENTS / "SM-210.md")
    assert not head["applies_to"] and not head["equipment_no"], "the edge must come from the text"
    assert "本マニュアルは、フォークリフトに適用する。" in body


def test_the_case_is_spread_over_its_documents() -> None:
    assert "F-17の事故原因は" in (DOCUMENTS / "AR-2025-004.md").read_text(encoding="utf-8")
    assert "F-17はフォークリフトである。" in (DOCUMENTS / "RP-2025-006.md").read_text(encoding="utf-8")
    interview = (DOCUMENTS / "IV-2025-011.md").read_text(encoding="utf-8")
    assert "17号車" in interview and "F-17" in interview


def test_staff_is_cp932_and_restricts_the_evaluation() -> None:
    assert {"髙橋健一", "高橋美咲"} <= {row["氏名"] for row in staff()}
    mapping = load_yaml(DEMO / "mappings" / "hr_staff.yaml")
    assert set(mapping["columns"]) == set(staff()[0])
    assert mapping["fields"]["evaluation"]["acl"] == {"allow": ["hr"]}


@pytest.mark.parametrize("path", sorted((DEMO / "mappings").glob("*.yaml")), ids=lambda path: path.stem)
def test_mapping_names_its_columns_and_hides_narrow_ones(path: Path) -> None:
    mapping = load_yaml(path)
    assert named_columns(mapping) <= set(mapping["columns"])
    narrow = {spec.get("column", name) for name, spec in mapping["fields"].items() if "acl" in spec}
    shown = named_columns({**mapping, "key": [], "fields": {}, "facts": []})
    assert not narrow & shown
    for fact in mapping["facts"]:
        if (fact.get("object") or fact["literal"])["column"] in narrow:
            assert "acl" in fact, fact


def test_mapping_predicates_and_types_are_in_the_ontology() -> None:
    ontology = (DEMO / "ontology.ttl").read_text(encoding="utf-8")
    for path in (DEMO / "mappings").glob("*.yaml"):
        mapping = load_yaml(path)
        types = {fact["object"]["type"] for fact in mapping["facts"] if "object" in fact}
        types |= {mapping["type"]} if isinstance(mapping["type"], str) else {mapping["type"]["default"]}
        for name in types:
            assert f"v:{name} a owl:Class" in ontology, name
        for fact in mapping["facts"]:
            assert re.search(rf"^v:{fact['predicate']} a owl:", ontology, re.M), fact["predicate"]


def test_patterns_compile_and_match() -> None:
    patterns = load_yaml(DEMO / "patterns.yaml")
    by_name = {rule["name"]: re.compile(rule["pattern"]) for rule in patterns["identifiers"]}
    assert by_name["equipment_no"].findall("K-08とF-170、F-17B、ABC-1234-X、MR-2291") == [
        "K-08",
        "F-170",
        "F-17B",
    ]
    assert by_name["product_code"].findall("ABC-1234-XLとABC-1243-Xを") == ["ABC-1234-XL", "ABC-1243-X"]
    is_a, applies_to = (re.compile(rule["pattern"]) for rule in patterns["facts"])
    match = is_a.search("フォークリフトF-17が無人の状態で")
    assert match and match.groupdict() == {"object": "フォークリフト", "subject": "F-17"}
    manual = applies_to.search(front_matter(DOCUMENTS / "SM-305.md")[1])
    assert manual and manual["object"] == "油圧プレス"


def test_change_script_is_well_formed() -> None:
    found = steps()
    assert len(found) >= 14
    assert len({step["id"] for step in found}) == len(found)
    for step in found:
        assert " / " in step["say"] and step["then"], step["id"]
        for check in step["then"]:
            assert len(CHECKS & set(check)) == 1, (step["id"], check)
    outcomes = {check["outcome"] for step in found for check in step["then"] if "outcome" in check}
    assert outcomes == OUTCOMES


def test_change_script_names_known_records() -> None:
    known, _ = loaded()
    for step in steps():
        known |= {identify(event)[0] for event in step["events"]}
        for check in step["then"]:
            named = [*check.get("contains", []), *check.get("lacks", []), *check.get("cites", [])]
            named += [check["document"]] if "document" in check else []
            for key in named:
                assert key in known, (step["id"], key)


def test_change_script_updates_the_maintenance_record() -> None:
    step = next(step for step in steps() if step["id"] == "01-mr-2291-completed")
    assert identify(step["events"][0]) == ("cmms/work_orders/MR-2291", False)


def test_golden_questions() -> None:
    questions = jsonl(DEMO / "golden.jsonl")
    _, live = loaded()
    assert len(questions) >= 60
    assert len({question["id"] for question in questions}) == len(questions)
    assert {question["kind"] for question in questions} == KINDS
    for question in questions:
        assert question["relevant"], question["id"]
        for key, grade in question["relevant"].items():
            assert key in live, (question["id"], key)
            assert grade in (1, 2, 3)


def test_independent_questions_ask_for_documents_of_the_demo() -> None:
    _, live = loaded()
    for question in jsonl(DEMO.parent / "bench" / "questions" / "demo.jsonl"):
        assert question["relevant"].keys() <= live, question["id"]


def test_the_lead_question_is_golden() -> None:
    lead = load_yaml(DEMO / "manifest.yaml")["lead_question"]
    golden = {question["question"]: question["relevant"] for question in jsonl(DEMO / "golden.jsonl")}
    assert "dms/documents/SM-210" in golden[lead]
