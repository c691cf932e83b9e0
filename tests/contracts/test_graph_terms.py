"""The quads of a fact: exact on reading, canonical in a store, never syntax."""

import msgspec
import pyoxigraph as ox
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.backends.graph_oxigraph_store import read_term
from pipeline.backends.graph_terms import fact_quads, plain_triple, read_record
from schemas.knowledge import DocumentRef, EntityRef, LiteralValue, Term
from tests.contracts.graph_fixtures import F17, fact

texts = st.text(st.characters(codec="utf-8"), max_size=20)
numbers = st.from_regex(r"[+-]?[0-9]{0,25}(\.[0-9]{0,20})?([eE][+-]?[0-9]{1,3})?", fullmatch=True)
times = st.datetimes().map(lambda at: at.isoformat()) | st.from_regex(
    r"20[0-9]{2}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?(Z|[+-]0[0-9]:[0-5]0)?",
    fullmatch=True,
)
datatypes = st.sampled_from(
    ["string", "boolean", "integer", "decimal", "double", "date", "dateTime", "time", "int", "anyURI"]
)
literals = st.builds(
    LiteralValue, texts | numbers | times | st.dates().map(str) | st.sampled_from(["true", "1"]), datatypes
)
values: st.SearchStrategy[Term] = (
    literals
    | st.builds(LiteralValue, texts, st.just("class"))
    | st.builds(EntityRef, texts, texts, texts)
    | st.builds(DocumentRef, texts)
)


@settings(max_examples=400, deadline=None)
@given(values, texts, texts, st.floats(0, 1), texts)
def test_a_store_keeps_the_quads_as_they_are_built(
    value: Term, predicate: str, document: str, confidence: float, version: str
) -> None:
    one = fact(F17, predicate, value, document, version, confidence=confidence)
    quads = fact_quads(one)
    store = ox.Store()
    store.load("\n".join(quad.n_quad() for quad in quads).encode(), format=ox.RdfFormat.N_QUADS)
    assert {tuple(map(read_term, quad)) for quad in store} == {
        (quad.subject, quad.predicate, quad.object, quad.graph) for quad in quads
    }
    (record,) = (quad.object.value for quad in quads if quad.predicate.value.endswith(":record"))
    assert read_record(record) == one


@pytest.mark.parametrize(
    ("value", "datatype", "expected"),
    [
        ("-0.0", "decimal", '"0"^^xsd:decimal'),
        (".5", "decimal", '"0.5"^^xsd:decimal'),
        ("1e3", "decimal", '"1e3"'),
        ("+05", "integer", '"5"^^xsd:integer'),
        ("1e300", "double", f'"1{"0" * 300}"^^xsd:double'),
        ("NaN", "double", '"NaN"^^xsd:double'),
        ("2025-02-30", "date", '"2025-02-30"'),
        ("2025-07-08T09:00:00.500+09:00", "dateTime", '"2025-07-08T09:00:00.5+09:00"^^xsd:dateTime'),
        ("2025-07-08T00:00:00+00:00", "dateTime", '"2025-07-08T00:00:00Z"^^xsd:dateTime'),
        ("2025-07-08 00:00:00", "dateTime", '"2025-07-08 00:00:00"'),
        ("P1D", "duration", '"P1D"'),
    ],
)
def test_literals_have_one_form(value: str, datatype: str, expected: str) -> None:
    written = plain_triple(fact(F17, "p", LiteralValue(value, datatype))).object.n3()
    assert written.replace("<http://www.w3.org/2001/XMLSchema#", "xsd:").replace(">", "") == expected


def test_a_fact_needs_the_iri_of_a_fact() -> None:
    with pytest.raises(ValueError, match="urn:shinsen:fact:"):
        fact_quads(msgspec.structs.replace(fact(F17, "p", F17), iri="urn:else"))
