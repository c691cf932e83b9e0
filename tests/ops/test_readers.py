"""Files as change events."""

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ops.readers import BadLine, FileEvent, Reading, read_files
from pipeline.decoding import decode
from pipeline.errors import InvalidConfiguration
from pipeline.mapping import Mappings
from schemas.change_event import ChangeEvent
from schemas.mapping import Mapping, PositionRule

HR = Mappings(
    [
        Mapping(
            source="hr",
            collection="staff",
            title="{氏名}",
            body=("{部署}",),
            key=("社員番号",),
            position=PositionRule("none"),
            updated_at="更新日時",
        )
    ]
)
CSV = '社員番号,氏名,部署,更新日時\r\n1,髙橋健一,物流課,2025-04-01 09:00\r\n2,斎藤①,"安全、\n衛生室",\r\n'


def staff(path: Path, **options: Any) -> Reading:
    return read_files(path, HR, source="hr", collection="staff", **options)


def events(reading: Reading, mappings: Mappings = HR) -> list[ChangeEvent]:
    return [e for item in reading if isinstance(item, FileEvent) for e in decode(item.event, mappings)]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp932", "utf-16"])
def test_csv_in_the_encodings_of_japan(tmp_path: Path, encoding: str) -> None:
    file = tmp_path / "staff.csv"
    file.write_bytes(CSV.encode(encoding))
    os.utime(file, ns=(0, 1_751_932_800_000_000_000))
    first, second = events(staff(file))
    assert first.columns == {"社員番号": "1", "氏名": "髙橋健一", "部署": "物流課", "更新日時": "2025-04-01 09:00"}
    assert (first.document, first.version) == ("hr/staff/1", "2025-04-01T00:00:00.000000Z")
    assert second.columns["部署"] == "安全、\n衛生室"
    assert second.version == "2025-07-08T00:00:00.000000Z"  # no time of its own: the file's


def test_publishing_again_gives_the_same_positions_and_a_changed_row_wins(tmp_path: Path) -> None:
    file = tmp_path / "staff.csv"
    file.write_text(CSV, "utf-8")
    before = events(staff(file))
    assert [e.position for e in before] == [e.position for e in events(staff(file))]
    file.write_text(CSV.replace("物流課,2025-04-01", "製造課,2025-04-02").replace("衛生室", "衛生課"), "utf-8")
    os.utime(file, ns=(0, file.stat().st_mtime_ns + 1000))
    assert all(old.position < new.position for old, new in zip(before, events(staff(file)), strict=True))


def test_bad_rows_are_named_and_the_rest_goes_on(tmp_path: Path) -> None:
    file = tmp_path / "staff.csv"
    file.write_text('社員番号,氏名\n1,a\n2\n,c\n\n4,d\n5,"e"x\n6,f\n', "utf-8")
    reading = staff(file)
    items = list(reading)
    bad = [(i.where, i.reason) for i in items if isinstance(i, BadLine)]
    assert [where for where, _ in bad] == [f"{file}:3", f"{file}:4", f"{file}:7"]
    assert "1 cells" in bad[0][1]
    assert "key column '社員番号' is empty" in bad[1][1]
    assert reading.seen == {"1", "4", "6"}
    with pytest.raises(InvalidConfiguration, match="nothing is deleted"):
        list(reading.deletes({"9"}, "2025-07-08T00:00:00Z"))


@pytest.mark.parametrize("content", [b"", b"a,a\n1,2\n", b"a,\n1,2\n", b"\x81\xff\xff,b\n"])
def test_files_without_usable_header_or_encoding(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "staff.csv"
    file.write_bytes(content)
    (item,) = staff(file)
    assert isinstance(item, BadLine)


def test_a_key_may_be_given_by_hand(tmp_path: Path) -> None:
    file = tmp_path / "x.tsv"
    file.write_text("a\tb\n1\tx|y\n", "utf-8")
    reading = read_files(file, Mappings(), source="s", collection="c", key=("a", "b"))
    assert [i.document for i in reading if isinstance(i, FileEvent)] == ["s/c/1|x\\|y"]
    (bad,) = read_files(file, Mappings(), source="s", collection="c")
    assert isinstance(bad, BadLine)
    assert "--key" in bad.reason


def test_json_lines_go_through_as_they_are(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    file.write_bytes(b'\xef\xbb\xbf{"a": 1}\r\n\r\nnot json\n')
    items = [i for i in read_files(file, Mappings()) if isinstance(i, FileEvent)]
    assert [(i.where, i.event.value) for i in items] == [(f"{file}:1", b'{"a": 1}'), (f"{file}:3", b"not json")]


def test_a_json_file_of_one_or_many(tmp_path: Path) -> None:
    file = tmp_path / "events.json"
    file.write_text('[{"a": 1}, {"a": 2}]')
    assert [i.event.value for i in read_files(file, Mappings()) if isinstance(i, FileEvent)] == [
        b'{"a": 1}',
        b'{"a": 2}',
    ]
    file.write_text('{"a": 3}')
    assert len(list(read_files(file, Mappings()))) == 1
    file.write_text("{")
    assert isinstance(next(iter(read_files(file, Mappings()))), BadLine)


def folder(path: Path) -> Path:
    (path / "sub").mkdir(parents=True)
    (path / ".git").mkdir()
    (path / "a.md").write_text(
        "---\nkey: D-1\ntitle: 題\neffective: 2025-07-08\nupdated_at: 2025-07-08T09:00:00+09:00\nacl: [x]\n---\n"
        "\n# 見出し\n本文\n",
        "utf-8",
    )
    (path / "sub" / "b.md").write_text("## 見出し ##\n本文", "utf-8")
    (path / "sub" / "c.txt").write_bytes("本文".encode("cp932"))
    (path / ".git" / "d.md").write_text("no")
    (path / "e.png").write_bytes(b"\x89")
    return path


def test_a_folder_of_documents(tmp_path: Path) -> None:
    reading = read_files(folder(tmp_path / "docs"), Mappings(), source="dms", collection="documents")
    first, second, third = events(reading, Mappings())
    assert first.columns == {
        "key": "D-1",
        "title": "題",
        "effective": "2025-07-08",
        "updated_at": "2025-07-08T09:00:00+09:00",
        "acl": ["x"],
        "body": "# 見出し\n本文",
        "path": "a.md",
    }
    assert first.version == "2025-07-08T00:00:00.000000Z"
    assert (second.key, second.columns["title"]) == ("sub/b.md", "見出し")
    assert (third.key, third.columns["title"], third.columns["body"]) == ("sub/c.txt", "c", "本文")


def test_a_full_sync_deletes_what_is_gone(tmp_path: Path) -> None:
    reading = read_files(folder(tmp_path / "docs"), Mappings(), source="dms", collection="documents")
    events(reading, Mappings())
    gone = list(reading.deletes(["D-1", "D-2", "sub/old.md"], "2030-01-01T00:00:00Z"))
    assert [i.document for i in gone] == ["dms/documents/D-2", "dms/documents/sub/old.md"]
    (event,) = decode(gone[0].event, Mappings())
    assert (event.op, event.positioned) == ("delete", False)


def test_a_full_sync_never_deletes_by_mistake(tmp_path: Path) -> None:
    empty, unread, lines = tmp_path / "empty", tmp_path / "docs", tmp_path / "a.jsonl"
    empty.mkdir()
    lines.write_text("{}")
    reading = read_files(empty, Mappings(), source="s", collection="c")
    assert list(reading) == []
    for refused, reason in (
        (reading, "not one row"),
        (read_files(folder(unread), Mappings(), source="s", collection="c"), "read to its end"),
        (read_files(lines, Mappings(), source="s", collection="c"), "no full state"),
    ):
        with pytest.raises(InvalidConfiguration, match=reason):
            list(refused.deletes({"k"}, "2030-01-01T00:00:00Z"))


@pytest.mark.parametrize("front", ["- a", "a: [", "a: &x 1\nb: *x", "updated_at: soon", "x: !!python/object:os.x y"])
def test_broken_front_matter(tmp_path: Path, front: str) -> None:
    (tmp_path / "a.md").write_text(f"---\n{front}\n---\nbody", "utf-8")
    (tmp_path / "b.md").write_text("--- no front matter\n---\nbody", "utf-8")
    bad, good = read_files(tmp_path, Mappings(), source="s", collection="c")
    assert isinstance(bad, BadLine)
    assert bad.where.endswith("a.md")
    assert isinstance(good, FileEvent)


@pytest.mark.parametrize("name", ["none.csv", "picture.png"])
def test_what_cannot_be_published(tmp_path: Path, name: str) -> None:
    (tmp_path / "picture.png").write_bytes(b"")
    with pytest.raises(InvalidConfiguration):
        read_files(tmp_path / name, Mappings())


def test_rows_need_a_source(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a\n1\n")
    with pytest.raises(InvalidConfiguration, match="--source"):
        read_files(tmp_path / "a.csv", Mappings())


def test_every_event_is_one_line_of_json(tmp_path: Path) -> None:
    for item in read_files(folder(tmp_path / "docs"), Mappings(), source="dms", collection="documents"):
        assert isinstance(item, FileEvent)
        assert b"\n" not in (item.event.value or b"")
        assert msgspec.json.decode(item.event.value or b"")["collection"] == "documents"
