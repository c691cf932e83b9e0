"""TREC: qrels (`topic 0 document grade`), and topics as tab-separated lines, JSON lines or `<top>` records.

The formats of trec_eval and of the ad hoc tracks (Voorhees and Harman, "TREC", MIT Press 2005).
"""

import re
from collections.abc import Callable
from pathlib import Path

import msgspec

from ops.evaluation.beir import read_passages
from ops.evaluation.golden import BadGolden, GoldenQuestion, GoldenSet, fault_of, make_set
from ops.evaluation.lines import LineCheck, json_lines, lines, unique
from pipeline.errors import InvalidConfiguration

_NUMBER = re.compile(r"<num>\s*(?:Number:)?\s*([^\s<]+)", re.IGNORECASE)
_TITLE = re.compile(r"<title>\s*(?:Topic:)?\s*(.*)", re.IGNORECASE)


class _Topic(msgspec.Struct, frozen=True):
    id: str
    text: str


def read_trec(
    path: Path, name: str, key_of: Callable[[str], str], topics: Path | None, corpus: Path | None
) -> GoldenSet:
    """Read qrels with their topics; topics without a line in the qrels are no questions."""
    if topics is None:
        raise InvalidConfiguration(f"{path} holds grades only: name the file of its topics, too")
    texts = _topics(topics)
    grades: dict[str, dict[str, int]] = {}
    for check, text in lines(path):
        columns = text.split()
        if len(columns) != 4:
            raise check.error(f"{len(columns)} columns, not 4: topic, 0, document, grade")
        topic, _, document, grade = columns
        if topic not in texts:
            raise check.error(f"{topics} has no topic {topic!r}")
        if grades.setdefault(topic, {}).setdefault(key_of(document), value := check.grade(grade)) != value:
            raise check.error(f"another grade for {topic} and {document} than before")
    questions = [GoldenQuestion(id=id, question=texts[id], relevant=relevant) for id, relevant in grades.items()]
    return make_set(name, questions, read_passages(corpus) if corpus else ())


def _topics(path: Path) -> dict[str, str]:
    if path.suffix.lower() == ".jsonl":
        found = [(check, topic.id, topic.text) for check, topic in json_lines(path, _Topic)]
    else:
        numbered = list(lines(path))
        records = any(text.lstrip().lower().startswith("<top>") for _, text in numbered)
        found = _records(numbered) if records else [_row(check, text) for check, text in numbered]
    seen = unique("topic")
    for check, topic, text in found:
        seen(check, topic)
        if fault := fault_of(text):
            raise check.error(f"topic {topic}: {fault}")
    if not found:
        raise BadGolden(path, 1, "no topics")
    return {topic: text.strip() for _, topic, text in found}


def _row(check: LineCheck, text: str) -> tuple[LineCheck, str, str]:
    topic, tab, rest = text.partition("\t")
    if not tab:
        raise check.error("no tab between the topic's number and its text")
    return check, topic.strip(), rest


def _records(numbered: list[tuple[LineCheck, str]]) -> list[tuple[LineCheck, str, str]]:
    """Read `<num>` and `<title>`; a title may stand on the line after its tag."""
    found: list[tuple[LineCheck, str, str]] = []
    topic, title = "", False
    for check, text in numbered:
        if number := _NUMBER.search(text):
            topic = number[1]
        elif opened := _TITLE.search(text):
            if not topic:
                raise check.error("a <title> without a <num> before it")
            title = not opened[1].strip()
            if not title:
                found.append((check, topic, opened[1].split("</title>")[0]))
                topic = ""
        elif title:
            found.append((check, topic, text))
            topic, title = "", False
    return found
