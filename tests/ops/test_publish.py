"""shinsen publish: CSV in CP932, folders with full sync, mappings remembered, what is refused and where."""

import os
from pathlib import Path

from tests.ops.commands import ROOT, native, shinsen, shinsen_json, write_events

STAFF = ROOT / "ops" / "demo" / "sources" / "06_hr_staff.csv"
MAPPINGS = ROOT / "ops" / "demo" / "mappings"


def keys(data: Path, query: str) -> list[str]:
    hits = shinsen_json("search", query, "--top-k", "50", "--data", data)["hits"]
    return sorted({hit["document"]["key"] for hit in hits})


def test_a_csv_in_cp932_with_japanese_headings(tmp_path: Path) -> None:
    arguments = ("publish", STAFF, "--source", "hr", "--collection", "staff", "--data", tmp_path / "d")
    env = {"SHINSEN_MAPPINGS": str(MAPPINGS)}
    first = shinsen(*arguments, env=env)
    assert first.exit_code == 0, first.output
    assert "hr/staff/10093" in keys(tmp_path / "d", "森本亮")
    status = shinsen_json("status", "--data", tmp_path / "d")
    shinsen(*arguments, env=env)
    shinsen("digest", "--data", tmp_path / "d")  # waits until every event has its outcome
    again = shinsen_json("status", "--data", tmp_path / "d")
    assert again["counts"]["records"] == status["counts"]["records"]
    assert again["counts"]["outcome.duplicate"] == status["counts"]["outcome.applied"]


def test_a_csv_without_mapping_takes_its_key_from_the_command(tmp_path: Path) -> None:
    file = tmp_path / "parts.csv"
    file.write_bytes("\ufeff部品番号,品名,説明\r\nBRK-1720-L,ブレーキシュー,左用\r\n,名無し,鍵なし\r\n".encode())
    report = shinsen_json(
        *("publish", file, "--source", "erp", "--collection", "parts", "--key", "部品番号"),
        *("--data", tmp_path / "d"),
        code=5,
    )
    assert report["accepted"] == 1
    assert report["rejected"][0]["where"] == f"{file}:3"
    assert keys(tmp_path / "d", "ブレーキシュー") == ["erp/parts/BRK-1720-L"]


def test_a_full_sync_of_a_folder_deletes_what_is_gone(tmp_path: Path) -> None:
    folder, data = tmp_path / "manuals", tmp_path / "d"
    folder.mkdir()
    for name in ("一", "二", "三"):
        (folder / f"{name}.md").write_text(f"# 手順書 {name}\n\n点検の手順を示す。\n", encoding="utf-8")
    other = write_events(tmp_path / "other.jsonl", native("MR-1", "点検の手順を守る。"))
    shinsen("publish", other, "--data", data)
    arguments = ("publish", folder, "--source", "dms", "--collection", "manuals", "--full-sync", "--data", data)
    assert shinsen_json(*arguments)["deleted"] == 0
    (folder / "二.md").unlink()
    changed = folder / "三.md"
    changed.write_text("# 手順書 三\n\n改めた点検の手順を示す。\n", encoding="utf-8")
    os.utime(changed, (2_000_000_000, 2_000_000_000))
    report = shinsen_json(*arguments)
    assert (report["deleted"], report["accepted"]) == (1, 3)
    assert keys(data, "点検の手順") == ["cmms/work_orders/MR-1", "dms/manuals/一.md", "dms/manuals/三.md"]


def test_a_full_sync_that_cannot_read_everything_deletes_nothing(tmp_path: Path) -> None:
    folder, data = tmp_path / "f", tmp_path / "d"
    folder.mkdir()
    for name in ("a", "b"):
        (folder / f"{name}.md").write_text(f"# {name}\n\n点検。\n")
    arguments = ("publish", folder, "--source", "dms", "--collection", "x", "--full-sync", "--data", data)
    shinsen(*arguments)
    (folder / "a.md").write_text("---\n[broken\n---\n点検。\n")
    result = shinsen(*arguments)
    assert result.exit_code == 2
    assert "nothing is deleted" in result.stderr
    assert len(keys(data, "点検")) == 2


def test_a_document_that_becomes_a_dead_letter_is_named_with_its_line(tmp_path: Path) -> None:
    unmapped = {"source": "hr", "collection": "staff", "key": "1", "position": 1, "record": {"x": 1}}
    events = write_events(tmp_path / "e.jsonl", native("MR-1", "点検。"), native("MR-2", "", title=None), unmapped)
    events.write_text(
        events.read_text() + '{"source":"hr","collection":"staff","key":"1","position":1,"record":{"x":1}}\n'
    )
    env = {"SHINSEN_MAPPINGS": str(MAPPINGS)}
    result = shinsen("publish", events, "--data", tmp_path / "d", env=env)
    assert result.exit_code == 5, result.output
    assert f"{events}:3" in result.stdout
    assert "missing_column" in result.stdout


def test_what_a_start_was_told_is_remembered(tmp_path: Path) -> None:
    data = tmp_path / "d"
    told = shinsen("run", "--exit", "--port", "0", "--data", data, env={"SHINSEN_MAPPINGS": str(MAPPINGS)})
    assert told.exit_code == 0, told.output
    before = shinsen_json("status", "--data", data)["generations"][0]["versions"]
    shinsen("publish", STAFF, "--source", "hr", "--collection", "staff", "--data", data)
    assert "hr/staff/10093" in keys(data, "森本亮")
    assert shinsen_json("status", "--data", data)["generations"][0]["versions"] == before
