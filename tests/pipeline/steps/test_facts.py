"""Facts from text: mentions and patterns."""

from pathlib import Path

import pytest

from pipeline.errors import InvalidConfiguration
from pipeline.ports.state import DeclaredName
from pipeline.steps.facts import NameIndex, TextFacts, facts_from_text, load_relations
from pipeline.steps.vocabulary import Vocabulary, class_families, default_vocabulary
from pipeline.text.identifiers import as_mentions
from schemas.access import AccessRule
from schemas.document import Analysis, Chunk, Document
from schemas.knowledge import DocumentRef, EntityRef, FactDraft, Mention

TITLE = "x"


def facts(
    body: str, *names: str, ner: tuple[Mention, ...] = (), text_facts: TextFacts | None = None
) -> list[FactDraft]:
    document = Document(
        key="dms/documents/M-1", title=TITLE, body="前置き。" + body, type="T", updated_at="", access=AccessRule()
    )
    start = len("前置き。")
    chunk = Chunk(id="c1", document=document.key, ordinal=0, start=start, end=start + len(body), text=body)
    found = as_mentions(default_vocabulary().identifiers.find(body), body)
    analysis = Analysis(terms=(), bigrams=(), identifiers=(), mentions=(*found, *ner))
    index = NameIndex([DeclaredName(n, "equipment", n, "d") for n in names])
    drafts = facts_from_text(document, [chunk], [analysis], index, text_facts)
    for draft in drafts:
        assert draft.chunk_id == "c1"
        assert draft.span is not None
        assert document.body[slice(*draft.span)]
    return drafts


def stated(body: str, *names: str, predicate: str = "is_a") -> list[tuple[str, str]]:
    return [(d.subject.key, d.object.key) for d in facts(body, *names) if d.predicate == predicate]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("body", "subject", "kind"),
    [
        ("フォークリフトF-17が動いた", "f-17", "フォークリフト"),
        ("フォークリフトＦ－１７が動いた", "f-17", "フォークリフト"),
        ("フォークリフト(F-17)が動いた", "f-17", "フォークリフト"),
        ("F-17(フォークリフト)が動いた", "f-17", "フォークリフト"),
        ("F-17は、カウンターバランス式フォークリフトである。", "f-17", "カウンターバランス式フォークリフト"),
        ("F-17はフォークリフトの一種です。", "f-17", "フォークリフト"),
        ("フォークリフトであるF-17が", "f-17", "フォークリフト"),
        ("フォークリフトのF-17は", "f-17", "フォークリフト"),
        ("無人搬送車A-05の停止", "a-05", "無人搬送車"),
        ("天井クレーンK-08", "k-08", "天井クレーン"),
    ],
)
def test_is_a(body: str, subject: str, kind: str) -> None:
    assert stated(body) == [(subject, kind)]


@pytest.mark.parametrize(
    "body",
    [
        "本日F-17が動いた",
        "北浜物流センターF-17",
        "昨日の故障はF-17である",
        "F-17は使用停止です",
        "F-17は止まった",
        "F-17(左右)を替える",
        "リーダーF-17",
        "フォークリフトは、車両である。",
        "F-17の件で、フォークリフトを止める",
    ],
)
def test_no_is_a(body: str) -> None:
    assert stated(body) == []


def test_a_declared_name_may_be_the_subject() -> None:
    assert stated("赤リフトはフォークリフトである。", "赤リフト") == [("赤リフト", "フォークリフト")]
    assert stated("赤リフトはフォークリフトである。") == []


@pytest.mark.parametrize(
    ("body", "objects"),
    [
        ("第2条 本マニュアルは、フォークリフトに適用する。", ["フォークリフト"]),
        ("この手順書はフォークリフトおよび天井クレーンに適用される。", ["フォークリフト", "天井クレーン"]),
        ("本書はP-21に関する手順である。", ["p-21"]),
        ("適用範囲:フォークリフト、天井クレーン\n", ["フォークリフト", "天井クレーン"]),
        ("対象設備: 油圧プレス", ["油圧プレス"]),
        ("このマニュアルは、つり上げ荷重0.5トン以上の天井クレーンを使う作業の安全を定める。", ["天井クレーン"]),
    ],
)
def test_applies_to(body: str, objects: list[str]) -> None:
    assert stated(body, predicate="applies_to") == [("dms/documents/M-1", one) for one in objects]


@pytest.mark.parametrize(
    "body", ["本書は、F-17の事故に関する報告である。", "本人は、車両に関する話をした。", "対象:6月23日の件"]
)
def test_no_applies_to(body: str) -> None:
    assert stated(body, predicate="applies_to") == []


def test_the_column_and_the_text_mean_the_same_thing() -> None:
    kind = default_vocabulary().entity("AnyKindOfOurs", "フォークリフト")
    (found,) = [d.object for d in facts("本書は、フォークリフトに適用する。") if d.predicate == "applies_to"]
    assert found == kind == EntityRef("concept", "フォークリフト", "フォークリフト")


def test_mentions_have_exact_spans_methods_and_one_label() -> None:
    drafts = facts("Ｆ－１７と赤リフト、またF-17。", "赤リフト")
    mentions = [(d.object.key, d.method, d.span) for d in drafts if d.predicate == "mentions"]  # type: ignore[union-attr]
    assert mentions == [("f-17", "identifier", (4, 8)), ("赤リフト", "name", (9, 13))]
    labels = [d.object.value for d in drafts if d.predicate == "label"]  # type: ignore[union-attr]
    assert labels == ["Ｆ－１７", "赤リフト"]


def test_a_name_wins_over_what_the_model_found_in_its_place() -> None:
    ner = (
        Mention(0, 2, "赤リ", "organization", "赤リ", "ner", 0.5),
        Mention(5, 7, "田中", "person", "田中", "ner", 0.5),
    )
    drafts = facts("赤リフトと田中。", "赤リフト", ner=ner)
    keys = [d.object.key for d in drafts if d.predicate == "mentions"]  # type: ignore[union-attr]
    assert keys == ["赤リフト", "田中"]


def test_private_use_characters_in_a_text_name_nothing() -> None:
    assert stated("フォークリフト\ue000\uf000はフォークリフトである。F-17") == []


def test_the_set_of_names_decides_not_their_order() -> None:
    body = "赤リフトと青リフトと緑リフト。赤リフトはフォークリフトである。"
    names = ("赤リフト", "青リフト", "緑リフト")
    assert facts(body, *names) == facts(body, *names[::-1])


def own(folder: Path, text: str) -> TextFacts:
    file = folder / "patterns.yaml"
    file.write_text(text, "utf-8")
    return TextFacts(load_relations([file]), default_vocabulary())


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    rule = r"""identifiers: []
facts:
  - predicate: located_at
    pattern: '(?P<subject>[A-Z]-\d{2})は(?P<object>[^\s。]+?棟)にある'
    subject_type: Equipment
    object_type: Place
"""
    text_facts = own(tmp_path, rule)
    drafts = [d for d in facts("K-08は組立棟にある。", text_facts=text_facts) if d.method == "pattern"]
    assert [(d.subject, d.predicate, d.object) for d in drafts[:1]] == [
        (EntityRef("id", "k-08", "K-08"), "located_at", EntityRef("place", "組立棟", "組立棟"))
    ]
    assert {d.predicate for d in drafts} == {"located_at", "label", "type"}
    assert text_facts.version != TextFacts(load_relations(), default_vocabulary()).version


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ("{predicate: p, pattern: '('}", "cannot be compiled"),
        ("{predicate: p, pattern: 'a'}", "needs a group"),
        ("{predicate: p, pattern: '(?P<object>a)(?P<other>b)'}", "no other named group"),
        ("{predicate: p, pattern: '(?P<object>a*)'}", "empty text"),
        ("{predicate: p, pattern: '(?P<object>(?:a+)+)b'}", "too long"),
        ("{predicate: 'a b', pattern: '(?P<object>a)'}", "local name"),
        ("{predicate: p, pattern: '(?P<object>a)', confidence: 2}", "between 0 and 1"),
        ("{predicate: p, regex: '(?P<object>a)'}", "unknown field"),
    ],
)
def test_a_bad_pattern_is_refused_with_its_line(tmp_path: Path, entry: str, reason: str) -> None:
    with pytest.raises(InvalidConfiguration, match=rf"patterns\.yaml:2: .*{reason}"):
        own(tmp_path, f"facts:\n  - {entry}\n")


def test_families_follow_the_ontology(tmp_path: Path) -> None:
    ontology = tmp_path / "own.ttl"
    ontology.write_text(
        """@prefix v: <urn:shinsen:v:> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
v:Crew rdfs:subClassOf v:Team . v:Team rdfs:subClassOf v:Organization . v:Person rdfs:subClassOf v:Agent .
v:Loop rdfs:subClassOf v:Pool . v:Pool rdfs:subClassOf v:Loop . v:Ship v:family "ship" .""",
        "utf-8",
    )
    families = class_families([ontology])
    wanted = {"Crew": "organization", "Person": "person", "Loop": "concept", "Ship": "ship", "Agent": None}
    assert {name: families.get(name) for name in wanted} == wanted
    vocabulary = Vocabulary(families, default_vocabulary().identifiers)
    assert vocabulary.entity("Crew", "「第1班」") == EntityRef("organization", "第1班", "「第1班」")
    assert vocabulary.entity("Crew", "F-17") == EntityRef("id", "f-17", "F-17")
    assert vocabulary.entity("Crew", "「」") is None
    with pytest.raises(InvalidConfiguration, match=r"own\.ttl"):
        ontology.write_text("nonsense", "utf-8")
        class_families([ontology])


def test_the_document_itself_is_the_subject_of_mentions() -> None:
    assert {d.subject for d in facts("F-17") if d.predicate == "mentions"} == {DocumentRef("dms/documents/M-1")}
