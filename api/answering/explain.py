"""Why an answer is what it is: the words looked for, and the best sentences of each document with their parts."""

from collections import Counter
from typing import Any

from api.answering.extract import Wanted
from api.answering.show import Shown

_PER_DOCUMENT = 2
_MOST = 40


def explain(wanted: Wanted, shown: Shown) -> dict[str, Any]:
    """Return what `explain: true` adds to an answer."""
    seen: Counter[str] = Counter()
    sentences = []
    for one in shown.scored:
        document = shown.passages[one.passage].document
        seen[document] += 1
        if seen[document] <= _PER_DOCUMENT:
            parts = {"coverage": round(one.coverage, 4), "cue": one.cue, "support": one.support, "named": one.named}
            sentences.append({"document": document, "text": one.sentence.text, "score": one.score, **parts})
    return {
        "query_type": wanted.question.query_type,
        "focus": wanted.focus.name if wanted.focus else None,
        "words": list(wanted.question.lexical.terms),
        "asked": list(wanted.asked),
        "identifiers": list(wanted.question.identifiers),
        "sentences": sentences[:_MOST],
    }
