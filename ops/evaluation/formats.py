"""Golden sets from files: our JSON lines, BEIR folders, TREC qrels with topics, SQuAD-style JSON.

Sets in which documents have plain ids take a source and a collection, so that `id` means `source/collection/id`.
"""

from enum import StrEnum
from pathlib import Path

import msgspec

from ops.evaluation.beir import read_beir, read_passages
from ops.evaluation.golden import GoldenQuestion, GoldenSet, fault_of, make_set
from ops.evaluation.lines import LineCheck, json_lines, unique
from ops.evaluation.squad import read_squad
from ops.evaluation.trec import read_trec
from pipeline.errors import InvalidConfiguration
from schemas.change_event import document_key, split_document_key


class Format(StrEnum):
    """How a golden set is written."""

    JSONL = "jsonl"
    BEIR = "beir"
    TREC = "trec"
    SQUAD = "squad"


class Place(msgspec.Struct, frozen=True):
    """The source and collection in which a set's plain ids are keys."""

    source: str = "eval"
    collection: str = "passages"

    def key(self, identifier: str) -> str:
        """Return the document key of a plain id."""
        return document_key(self.source, self.collection, identifier)


class _Line(msgspec.Struct, frozen=True):
    id: str
    question: str
    relevant: dict[str, int]
    kind: str = ""
    split: str = ""


def read_golden(
    path: Path,
    place: Place,
    *,
    form: Format | None = None,
    topics: Path | None = None,
    corpus: Path | None = None,
    split: str | None = None,
) -> GoldenSet:
    """Read a golden set; without `form` what the path is tells it.

    Args:
        path: A file, or the folder of a BEIR set.
        place: Where plain ids live.
        form: How it is written.
        topics: The questions of TREC qrels.
        corpus: Passages beside it, as BEIR writes them, for TREC qrels and our JSON lines.
        split: Only these questions: the `split` of our lines, the name of BEIR's `qrels/<split>.tsv`.

    Raises:
        InvalidConfiguration: A file is missing or malformed; the text holds file and line.
    """
    kind = form or _form_of(path)
    if topics is not None and kind is not Format.TREC:
        raise InvalidConfiguration(f"topics belong to TREC qrels; {path} is read as {kind.value}")
    name = path.resolve().name
    if kind is Format.BEIR:
        return read_beir(path, name, place.key, split)
    if kind is Format.SQUAD:
        return read_squad(path, name, place.key)
    if kind is Format.TREC:
        return read_trec(path, name, place.key, topics, corpus)
    return _read_own(path, name, corpus, split)


def _form_of(path: Path) -> Format:
    if path.is_dir():
        return Format.BEIR
    by_ending = {".jsonl": Format.JSONL, ".json": Format.SQUAD, ".qrels": Format.TREC, ".txt": Format.TREC}
    if form := by_ending.get(path.suffix.lower()):
        return form
    known = ", ".join(format.value for format in Format)
    raise InvalidConfiguration(f"{path}: how the golden set is written cannot be told from its name; say it ({known})")


def _read_own(path: Path, name: str, corpus: Path | None, split: str | None) -> GoldenSet:
    questions: list[GoldenQuestion] = []
    seen = unique("question id")
    for check, line in json_lines(path, _Line):
        seen(check, line.id)
        if fault := fault_of(line.question):
            raise check.error(fault)
        relevant = {_whole(key, check): check.grade(grade) for key, grade in line.relevant.items()}
        if split is None or line.split == split:
            questions.append(
                GoldenQuestion(id=line.id, question=line.question, relevant=relevant, kind=line.kind, split=line.split)
            )
    if not questions:
        raise InvalidConfiguration(f"{path}: no questions" + (f" of split {split!r}" if split else ""))
    return make_set(name, questions, read_passages(corpus) if corpus else ())


def _whole(key: str, check: LineCheck) -> str:
    try:
        split_document_key(key)
    except ValueError:
        raise check.error(f"{key!r} is no document key: write source/collection/key") from None
    return key
