"""A golden set: questions, and the documents that answer them with a grade each."""

from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path

import msgspec

from pipeline.errors import InvalidConfiguration
from schemas.query import MAX_QUESTION

MOST_QUESTIONS = 200_000
MOST_PASSAGES = 2_000_000
HIGHEST_GRADE = 10
"""The gain of a grade is 2^grade − 1."""
SEED = 20_260_701
"""Of every interval and test, unless another is given."""


class BadGolden(InvalidConfiguration):
    """A file of a golden set is malformed: put right what stands at `file:line`."""

    def __init__(self, path: Path, line: int | str, reason: str) -> None:
        """`line` counts from 1; in one JSON value it is a path into it (`data[3].title`)."""
        super().__init__(f"{path}:{line}: {reason}")


def fault_of(question: str) -> str:
    """Return why the API would not take this as a question; empty when it would."""
    if not question.strip():
        return "the question is empty"
    if len(question) > MAX_QUESTION:
        return f"the question has {len(question):,} characters, more than {MAX_QUESTION:,}"
    return ""


class GoldenQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A question with its graded documents."""

    id: str
    question: str
    relevant: dict[str, int]
    """Document key (`source/collection/key`) to grade, 0..10; what is not listed has grade 0."""
    kind: str = ""
    """What the set's author calls it: `concept`, `identifier`, …; empty when nobody said."""
    split: str = ""


class Passage(msgspec.Struct, frozen=True):
    """A document that comes with the set."""

    id: str
    """Its key inside the collection."""
    title: str
    text: str


class GoldenSet(msgspec.Struct, frozen=True, kw_only=True):
    """The questions of a set, each with at least one relevant document, and its corpus where one comes with it."""

    name: str
    questions: tuple[GoldenQuestion, ...]
    passages: tuple[Passage, ...] = ()
    notes: tuple[str, ...] = ()
    """What was left out, and why: for the report."""

    def fingerprint(self) -> str:
        """Return a short hash of questions and grades: two reports with the same one are about the same set."""
        return sha256(msgspec.json.encode(self.questions)).hexdigest()[:12]


def make_set(
    name: str, questions: Sequence[GoldenQuestion], passages: Sequence[Passage] = (), notes: Sequence[str] = ()
) -> GoldenSet:
    """Make a set, leaving out the questions that nothing could answer: every measure of them is undefined."""
    kept = tuple(q for q in questions if any(grade > 0 for grade in q.relevant.values()))
    left = len(questions) - len(kept)
    said = [*notes, f"{left} questions without a relevant document were left out"] if left else notes
    return GoldenSet(name=name, questions=kept, passages=tuple(passages), notes=tuple(said))


def chosen(
    golden: GoldenSet, *, keep: Callable[[GoldenQuestion], bool] = lambda _: True, most: int | None = None
) -> GoldenSet:
    """Return the set with some of its questions; of those kept, `most` in the order of their ids' hashes.

    The choice depends on neither the order of the file nor a random generator.
    """
    questions = [q for q in golden.questions if keep(q)]
    if most is not None and most < len(questions):
        first = {q.id for q in sorted(questions, key=lambda q: sha256(q.id.encode()).digest())[:most]}
        questions = [q for q in questions if q.id in first]
    if len(questions) == len(golden.questions):
        return golden
    note = f"{len(questions)} of {len(golden.questions)} questions chosen"
    return msgspec.structs.replace(golden, questions=tuple(questions), notes=(*golden.notes, note))
