"""Records become documents."""

from typing import Any

import pytest

from pipeline.errors import InvalidEvent
from pipeline.mapping import Mappings
from pipeline.steps.facts import declared_names
from pipeline.steps.iris import bind_facts
from pipeline.steps.map import map_record
from schemas.access import AccessRule
from schemas.document import Document
from schemas.knowledge import EntityRef, LiteralValue
from schemas.mapping import (
    AccessSpec,
    BodyPart,
    ColumnRule,
    EntitySpec,
    FactSpec,
    FieldSpec,
    LiteralSpec,
    Mapping,
    NameSpec,
    ObjectSpec,
    TypeSpec,
)
from schemas.record import Record

AT = "2025-07-08T00:00:00.000000Z"


def record(**columns: Any) -> Record:
    return Record(document="crm/customers/C-1", op="upsert", position="p", version="1", occurred_at=AT, columns=columns)


def mapping(**parts: Any) -> Mapping:
    return Mapping(**{"source": "crm", "collection": "customers", "title": "{name}", "body": ("{notes}",), **parts})


def by_default(**columns: Any) -> Document:
    return map_record(record(**columns), Mappings().of("crm", "customers"))


def refusal(columns: dict[str, Any], **parts: Any) -> InvalidEvent:
    with pytest.raises(InvalidEvent) as caught:
        map_record(record(**columns), mapping(**parts))
    return caught.value


def test_a_body_of_parts() -> None:
    body = (
        "{a} and {b}",
        BodyPart(template="by {c}", heading="Author"),
        BodyPart(column="d", heading="Notes"),
        "{{braces}}",
    )
    columns = {"name": " 甲 \n乙 ", "a": "x", "b": None, "c": "", "d": "line\r\nline"}
    document = map_record(record(**columns), mapping(body=body))
    assert document.title == "甲 乙"
    assert document.body == "x and\n\n## Notes\n\nline\nline\n\n{braces}"


def test_types_times_and_fields() -> None:
    document = map_record(
        record(name="x", notes="", kind=" Policy ", at="令和7年7月8日", price="DsguAA==", n="7", tags=["a", "b"]),
        mapping(
            type=TypeSpec("kind"),
            updated_at="at",
            columns={"price": ColumnRule("decimal", 2)},
            fields={
                "price": FieldSpec("decimal", acl=AccessSpec(allow=("sales",))),
                "day": FieldSpec("date", "at"),
                "n": FieldSpec("integer"),
                "code": FieldSpec("keyword", "n"),
                "tags": FieldSpec(),
                "gone": FieldSpec(),
            },
            acl=AccessSpec(allow=("staff",)),
        ),
    )
    assert document.type == "Policy"
    assert document.updated_at == "2025-07-07T15:00:00.000000Z"
    assert document.fields == {"price": "2480000", "day": "2025-07-08", "n": 7, "code": "7", "tags": ["a", "b"]}
    assert document.restricted_fields == {"price": AccessRule((("sales",), ("staff",)))}


@pytest.mark.parametrize(
    ("columns", "parts", "column"),
    [
        ({"notes": "x"}, {}, "name"),
        ({"name": "x"}, {}, "notes"),
        ({"name": "x", "notes": "y"}, {"entity": EntitySpec("id", "Customer")}, "id"),
        ({"name": "x", "notes": "y"}, {"key": ("id",)}, "id"),
        ({"name": "x", "notes": "y"}, {"required": ("owner",)}, "owner"),
    ],
)
def test_a_mapping_that_names_a_missing_column(columns: dict[str, Any], parts: dict[str, Any], column: str) -> None:
    error = refusal(columns, **parts, file="mappings/crm.yaml")
    assert (error.code, error.pointer) == ("missing_column", f"/columns/{column}")
    assert repr(column) in error.reason
    assert "mappings/crm.yaml" in error.reason
    assert (error.document, error.position) == ("crm/customers/C-1", "p")


def test_null_is_empty_and_not_missing() -> None:
    document = map_record(record(name=None, notes=None), mapping())
    assert (document.title, document.body) == ("C-1", "")


@pytest.mark.parametrize(
    ("columns", "parts", "pointer"),
    [
        ({"name": {"a": 1}, "notes": ""}, {}, "/columns/name"),
        ({"name": "x", "notes": "", "n": "soon"}, {"fields": {"n": FieldSpec("integer")}}, "/columns/n"),
        ({"name": "x", "notes": "", "a/b": "soon"}, {"updated_at": "a/b"}, "/columns/a~1b"),
        ({"name": "x", "notes": "", "acl": 7}, {"acl": AccessSpec(column="acl")}, "/columns/acl"),
        ({"name": "x", "notes": "", "acl": ["*"]}, {"acl": AccessSpec(column="acl")}, "/columns/acl"),
        ({"name": "x", "notes": "", "acl": [""]}, {"acl": AccessSpec(column="acl")}, "/columns/acl"),
    ],
)
def test_wrong_types_have_a_pointer(columns: dict[str, Any], parts: dict[str, Any], pointer: str) -> None:
    error = refusal(columns, **parts)
    assert (error.code, error.pointer) == ("wrong_type", pointer)


def test_limits() -> None:
    assert refusal({"name": "x" * 1001, "notes": ""}).code == "title_too_long"
    many = FactSpec("p", object=ObjectSpec("names", "Thing", split=","))
    assert refusal({"name": "x", "notes": "", "names": ",".join(map(str, range(1000)))}, facts=(many,)).code == (
        "too_many_facts"
    )
    assert refusal({"name": "x", "notes": "", "names": "x" * 301}, facts=(many,)).code == "wrong_type"
    with pytest.raises(InvalidEvent) as caught:
        by_default(title="x", body="y", fields={str(n): n for n in range(201)})
    assert caught.value.code == "too_many_fields"


@pytest.mark.parametrize(
    ("spec", "columns", "expected"),
    [
        (AccessSpec(), {}, AccessRule()),
        (AccessSpec(allow=("a",), deny=("b",)), {}, AccessRule((("a",),), ("b",))),
        (AccessSpec(deny=("b",)), {}, AccessRule(deny=("b",))),
        (AccessSpec(column="acl", default=("a",)), {"acl": None}, AccessRule((("a",),))),
        (AccessSpec(column="acl", default=("a",)), {}, AccessRule((("a",),))),
        (AccessSpec(column="acl", default=("a",)), {"acl": ["b", "!c"]}, AccessRule((("b",),), ("c",))),
        (AccessSpec(column="acl", default=("a",)), {"acl": "b、c, d"}, AccessRule((("b", "c", "d"),))),
        (AccessSpec(column="acl", default=("a",)), {"acl": []}, AccessRule(((),))),
        (AccessSpec(column="acl"), {}, AccessRule(((),))),
    ],
)
def test_access(spec: AccessSpec, columns: dict[str, Any], expected: AccessRule) -> None:
    assert map_record(record(name="x", notes="", **columns), mapping(acl=spec)).access == expected


def test_a_rule_without_groups_lets_nobody_read() -> None:
    rule = map_record(record(name="x", notes="", acl=[]), mapping(acl=AccessSpec(column="acl"))).access
    assert not rule.permits(frozenset({"public", "staff"}))
    assert rule.permits(frozenset({"*"}))


def test_the_default_mapping_takes_records_as_the_api_shows_them() -> None:
    document = by_default(
        title="T",
        body="B",
        fields={"n": 7, "s": " x ", "none": None, "l": ["a", 1, True]},
        acl=["g"],
        updated_at="2025-07-08",
    )
    assert (document.title, document.body, document.type) == ("T", "B", "Document")
    assert document.fields == {"n": 7, "s": "x", "l": ["a", "1", "true"]}
    assert document.access == AccessRule((("g",),))
    assert document.updated_at == "2025-07-07T15:00:00.000000Z"


def test_the_default_mapping_writes_out_records_of_any_shape() -> None:
    document = by_default(zeta="z", name="甲", alpha=1.5, gone=None, nested={"a": 1}, tags=["x", "y"])
    assert document.title == "甲"
    assert document.body == "alpha: 1.5\nname: 甲\ntags: x、y\nzeta: z"
    assert document.access == AccessRule()
    assert by_default().title == "C-1"


@pytest.mark.parametrize(
    "columns", [{"fields": 7}, {"fields": {"a": {}}}, {"title": {}}, {"body": {}}, {"updated_at": "x"}]
)
def test_the_default_mapping_refuses_wrong_types(columns: dict[str, Any]) -> None:
    with pytest.raises(InvalidEvent) as caught:
        by_default(**columns)
    assert caught.value.code == "wrong_type"


LEDGER = mapping(
    entity=EntitySpec("code", "Equipment", labels=("name",), aliases=(NameSpec("aliases", "、"),)),
    facts=(
        FactSpec("is_a", object=ObjectSpec("kind", "Kind")),
        FactSpec("price", literal=LiteralSpec("price"), acl=AccessSpec(allow=("accounting",))),
        FactSpec("about", subject="document", object=ObjectSpec("code", "Equipment")),
    ),
    columns={"price": ColumnRule("decimal")},
    acl=AccessSpec(allow=("staff",)),
)


def ledger() -> Document:
    return map_record(
        record(
            name="Lift", notes="n", code="Ｆ－１７", aliases="17号車、赤リフト、", kind="フォークリフト", price="12.50"
        ),
        LEDGER,
    )


def test_facts_of_an_entity() -> None:
    entity = EntityRef("id", "f-17", "Ｆ－１７")
    stated = {(d.predicate, d.object) for d in ledger().facts if d.subject == entity}
    assert stated == {
        ("type", LiteralValue("Equipment", "class")),
        ("label", LiteralValue("Ｆ－１７")),
        ("label", LiteralValue("Lift")),
        ("alias", LiteralValue("17号車")),
        ("alias", LiteralValue("赤リフト")),
        ("same_as", EntityRef("equipment", "17号車", "17号車")),
        ("same_as", EntityRef("equipment", "赤リフト", "赤リフト")),
        ("is_a", EntityRef("concept", "フォークリフト", "フォークリフト")),
        ("price", LiteralValue("12.5", "decimal")),
    }


def test_names_are_declared_as_the_entities_they_would_be_alone() -> None:
    names = declared_names("crm/customers/C-1", ledger().facts)
    assert [(n.name, n.family, n.key) for n in names] == [
        ("17号車", "equipment", "17号車"),
        ("赤リフト", "equipment", "赤リフト"),
    ]


def test_bound_facts_are_deterministic_and_narrowed_by_their_column() -> None:
    document = ledger()
    facts = bind_facts(document.facts, document, "v1", AT)
    later = bind_facts(document.facts[::-1], document, "v1", "2025-07-09T00:00:00.000000Z")
    assert [f.iri for f in facts] == [f.iri for f in later]  # neither order nor source time names a fact
    price = next(f for f in facts if f.predicate == "price")
    assert price.access_class == AccessRule((("accounting",), ("staff",))).access_class()
    other = bind_facts(document.facts, document, "v2", AT)
    assert {f.iri for f in facts}.isdisjoint(f.iri for f in other)


def test_a_number_as_the_records_own_time_is_a_point_in_time() -> None:
    columns = {"title": "題", "body": "本文", "updated_at": 1751965200}
    record = Record(
        document="a/b/c",
        op="upsert",
        position="",
        version="1",
        occurred_at="2025-01-01T00:00:00.000000Z",
        columns=columns,
    )
    assert map_record(record, Mappings().of("a", "b")).updated_at == "2025-07-08T09:00:00.000000Z"
