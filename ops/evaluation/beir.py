"""BEIR folders: `corpus.jsonl`, `queries.jsonl`, and `qrels.tsv` or `qrels/<split>.tsv`.

The layout of Thakur et al., "BEIR: A Heterogeneous Benchmark for Zero-shot Evaluation of Information Retrieval
Models" (NeurIPS 2021).
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from ops.evaluation.golden import GoldenQuestion, GoldenSet, Passage, fault_of, make_set
from ops.evaluation.lines import json_lines, lines, unique
from pipeline.errors import InvalidConfiguration

_HEADER = "query-id"


class _Query(msgspec.Struct, frozen=True):
    id: str = msgspec.field(name="_id")
    text: str
    kind: str = ""
    metadata: dict[str, Any] = {}


class _Document(msgspec.Struct, frozen=True):
    id: str = msgspec.field(name="_id")
    text: str
    title: str = ""


def read_beir(folder: Path, name: str, key_of: Callable[[str], str], split: str | None) -> GoldenSet:
    """Read a folder; the questions are those with a line in the qrels."""
    corpus = folder / "corpus.jsonl"
    passages = read_passages(corpus) if corpus.exists() else ()
    queries = _queries(folder / "queries.jsonl")
    grades, unknown = _qrels(_qrels_file(folder, split), queries, key_of, {p.id for p in passages})
    questions = [
        GoldenQuestion(
            id=query.id,
            question=query.text,
            relevant=grades[query.id],
            kind=query.kind or str(query.metadata.get("kind", "")),
        )
        for query in queries.values()
        if query.id in grades
    ]
    notes = [f"{unknown} lines of the qrels name documents that corpus.jsonl does not have"] if unknown else []
    return make_set(name, questions, passages, notes)


def read_passages(path: Path) -> tuple[Passage, ...]:
    """Read a `corpus.jsonl`: `_id`, `title`, `text`."""
    found: list[Passage] = []
    seen = unique("_id")
    for check, document in json_lines(path, _Document):
        seen(check, document.id)
        found.append(Passage(document.id, document.title, document.text))
    return tuple(found)


def _queries(path: Path) -> dict[str, _Query]:
    found: dict[str, _Query] = {}
    seen = unique("_id")
    for check, query in json_lines(path, _Query):
        seen(check, query.id)
        if fault := fault_of(query.text):
            raise check.error(fault)
        found[query.id] = query
    return found


def _qrels_file(folder: Path, split: str | None) -> Path:
    """`--split` chooses a file; without it `qrels.tsv`, else the test questions."""
    plain = folder / "qrels.tsv"
    if split is None and plain.exists():
        return plain
    chosen = folder / "qrels" / f"{split or 'test'}.tsv"
    if chosen.exists():
        return chosen
    there = sorted(str(path.relative_to(folder)) for path in folder.glob("qrels*/*.tsv"))
    raise InvalidConfiguration(
        f"{folder} has no {'qrels.tsv and no ' if split is None else ''}qrels/{split or 'test'}.tsv"
        + (f"; there are {', '.join(there)}: choose one by its split" if there else "")
    )


def _qrels(
    path: Path, queries: dict[str, _Query], key_of: Callable[[str], str], known: set[str]
) -> tuple[dict[str, dict[str, int]], int]:
    """Return the grades by question, and how many lines name a document that the corpus does not have."""
    grades: dict[str, dict[str, int]] = {}
    unknown = 0
    for check, text in lines(path):
        columns = text.split("\t")
        if columns[0] == _HEADER:
            continue
        if len(columns) != 3:
            raise check.error(f"{len(columns)} columns, not 3: query-id, corpus-id and score, separated by tabs")
        query, document, grade = (column.strip() for column in columns)
        if query not in queries:
            raise check.error(f"queries.jsonl has no question {query!r}")
        unknown += bool(known) and document not in known
        if grades.setdefault(query, {}).setdefault(key_of(document), value := check.grade(grade)) != value:
            raise check.error(f"another grade for {query} and {document} than before")
    return grades, unknown
