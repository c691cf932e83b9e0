"""Mapping files: what is taken, and what is refused with file, line and reason."""

from pathlib import Path

import pytest

from pipeline.errors import InvalidConfiguration
from pipeline.mapping import Mappings, load_mappings

BASE = "source: crm\ncollection: customers\ntitle: '{name}'\nbody: ['{notes}']\n"  # 4 lines


def load(folder: Path, text: str | bytes, name: str = "crm.yaml") -> Mappings:
    (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_mappings([folder])


def test_a_folder_of_mappings(tmp_path: Path) -> None:
    mappings = load(tmp_path, BASE + "acl: {allow: [sales]}\n")
    assert mappings.of("crm", "customers").acl.allow == ("sales",)
    assert [m.collection for m in mappings.all()] == ["customers"]


def test_a_collection_without_a_file_has_the_default(tmp_path: Path) -> None:
    mapping = load(tmp_path, BASE).of("x", "y")
    assert (mapping.source, mapping.collection, mapping.any_record) == ("x", "y", True)


def test_the_version_is_that_of_the_content(tmp_path: Path) -> None:
    first = load(tmp_path, BASE).version("crm", "customers")
    assert load(tmp_path, "# a remark\n" + BASE + "extra: {by: me}\n").version("crm", "customers") == first
    changed = load(tmp_path, BASE + "type: Customer\n")
    assert changed.version("crm", "customers") != first
    assert changed.fingerprint != Mappings().fingerprint


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("columns:\n  a: {type: text}\n  b: {type: number}\n", 7, "Invalid enum value 'number'"),
        ("fields:\n  a: {type: text}\n  b:\n    typ: text\n", 8, "unknown field `typ`"),
        ("facts:\n  - predicate: p\n    literal: {column: 3}\n", 7, "Expected `str`"),
        ("nonsense: 1\n", 5, "unknown field `nonsense`"),
        ("type: {default: X}\n", 5, "missing required field `column`"),
        ("facts:\n  - {predicate: p, literal: {column: a}}\n  - {predicate: p}\n", 7, "needs one of"),
        ("facts:\n  - {predicate: 'has part', literal: {column: a}}\n", 6, "must be a local name"),
        ("facts:\n  - {predicate: p, subject: entity, literal: {column: a}}\n", 6, "no 'entity'"),
        ("entity: {column: a, type: 'a b'}\n", 5, "must be a local name"),
        ("acl: {allow: ['*']}\n", 5, "'public' is everybody"),
        ("fields:\n  a: {acl: {deny: []}}\n", 6, "names no group"),
        ("columns:\n  a: {type: text, scale: 2}\n", 6, "belongs to decimals"),
        ("position: {rule: none, column: a}\n", 5, "reads no column"),
        ("key: [a, a]\n", 5, "names a column twice"),
        ("source: other\n", 5, "is written twice"),
        ("file: x.yaml\n", 5, "set by the loader"),
        ("fields:\n  notes: {acl: {allow: [sales]}}\n", 4, "has an acl of its own"),
        ("facts:\n  - {predicate: p, literal: {column: name}, acl: {allow: [sales]}}\n", 3, "has an acl of its own"),
        (
            "fields:\n  a: {acl: {allow: [g]}}\nentity: {column: b, type: T, aliases: [{column: a}]}\n",
            7,
            "acl of its own",
        ),
        ("x: [\n", 6, "expected the node content"),
        ("x: &a [*a]\n", 5, "more than"),
        ("a: !!python/object:os.system x\n", 5, "could not determine a constructor"),
    ],
)
def test_refused_with_file_line_and_reason(tmp_path: Path, text: str, line: int, reason: str) -> None:
    with pytest.raises(InvalidConfiguration) as caught:
        load(tmp_path, BASE + text)
    assert str(caught.value).startswith(f"{tmp_path / 'crm.yaml'}:{line}: ")
    assert reason in str(caught.value)


@pytest.mark.parametrize("template", ["{", "}", "{}", "{a{b}}", "{a"])
def test_broken_templates(tmp_path: Path, template: str) -> None:
    with pytest.raises(InvalidConfiguration, match=r"crm\.yaml:3: title: "):
        load(tmp_path, BASE.replace("{name}", template))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty"),
        (b"\xff\xfe", "not UTF-8"),
        (b"a" * 300_000, "more than"),
        (b"[" * 50_000, "YAML|recursion|expected"),
    ],
)
def test_files_that_are_no_mapping(tmp_path: Path, content: bytes, reason: str) -> None:
    with pytest.raises(InvalidConfiguration, match=reason):
        load(tmp_path, content)


def test_aliases_cannot_grow_without_end(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x]"] + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    with pytest.raises(InvalidConfiguration, match="aliases count each time"):
        load(tmp_path, "\n".join(lines))


def test_two_files_for_one_collection(tmp_path: Path) -> None:
    load(tmp_path, BASE)
    with pytest.raises(InvalidConfiguration, match=r"b\.yaml: maps crm/customers, which .*a\.yaml maps already"):
        (tmp_path / "crm.yaml").rename(tmp_path / "a.yaml")
        load(tmp_path, BASE, "b.yaml")


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfiguration, match="no such"):
        load_mappings([tmp_path / "none.yaml"])
