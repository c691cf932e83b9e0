"""What a question asks, apart from the names of what it asks about."""

from collections.abc import Sequence

from api.retrieval.entities import LinkedEntity
from api.retrieval.question import AnalyzedQuestion
from pipeline.text.normalize import fold


def asked_words(question: AnalyzedQuestion, entities: Sequence[LinkedEntity]) -> list[str]:
    """Return the question's words that are no part of a name it holds, in order."""
    names = [fold(text)[0] for entity in entities for text in (entity.ref.key, entity.ref.surface, entity.label)]
    words = dict.fromkeys(question.analysis.terms)
    return [word for word in words if word not in question.identifiers and not any(word in name for name in names)]
