"""SQuAD-style JSON: articles with paragraphs with questions. Each question asks for the paragraph it stands under.

Format: Rajpurkar et al., "SQuAD: 100,000+ Questions for Machine Comprehension of Text" (EMNLP 2016). A set of this
kind is written from its passages, which flatters matching by words.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from ops.evaluation.golden import BadGolden, GoldenQuestion, GoldenSet, Passage, fault_of, make_set
from pipeline.errors import InvalidConfiguration

LARGEST_FILE = 2 << 30
_SEPARATOR = " [SEP] "
"""JSQuAD writes the title before the text of each paragraph."""


class _Asked(msgspec.Struct, frozen=True):
    id: str
    question: str
    is_impossible: bool = False


class _Paragraph(msgspec.Struct, frozen=True):
    context: str
    qas: list[_Asked] = []


class _Article(msgspec.Struct, frozen=True):
    paragraphs: list[_Paragraph]
    title: str = ""


def read_squad(path: Path, name: str, key_of: Callable[[str], str]) -> GoldenSet:
    """Read a file; passages get the ids `article-paragraph`, counted from 0; equal ones are one."""
    passages: dict[tuple[str, str], Passage] = {}
    questions: dict[str, GoldenQuestion] = {}
    impossible = 0
    for number, article in enumerate(_articles(path)):
        for place, paragraph in enumerate(article.paragraphs):
            text = paragraph.context.removeprefix(article.title + _SEPARATOR) if article.title else paragraph.context
            passage = Passage(f"{number}-{place}", article.title, text)
            passage = passages.setdefault((passage.title, text), passage)
            for at, asked in enumerate(paragraph.qas):
                where = f"data[{number}].paragraphs[{place}].qas[{at}]"
                if not asked.id or asked.id in questions:
                    raise BadGolden(path, where, f"the id {asked.id!r} is empty or given twice")
                if fault := fault_of(asked.question):
                    raise BadGolden(path, where, fault)
                if asked.is_impossible:
                    impossible += 1
                    continue
                questions[asked.id] = GoldenQuestion(
                    id=asked.id, question=asked.question, relevant={key_of(passage.id): 1}
                )
    notes = [f"{impossible} questions that their paragraph does not answer were left out"] if impossible else []
    return make_set(name, list(questions.values()), list(passages.values()), notes)


def _articles(path: Path) -> list[_Article]:
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise InvalidConfiguration(f"{path} is larger than {LARGEST_FILE:,} bytes")
        content: Any = json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise InvalidConfiguration(f"{path} cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise BadGolden(path, 1, f"not UTF-8 ({error.reason} at byte {error.start})") from error
    except json.JSONDecodeError as error:  # the only decoder here that says the line
        raise BadGolden(path, error.lineno, error.msg) from error
    data = content.get("data") if isinstance(content, dict) else content
    try:
        return msgspec.convert(data, list[_Article])
    except msgspec.ValidationError as error:
        reason, _, where = str(error).partition(" - at ")
        raise BadGolden(path, "data" + where.strip("`").removeprefix("$"), reason) from error
