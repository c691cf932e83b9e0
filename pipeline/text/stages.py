"""Each stage of the analysis of a text, for people who want to see why something is found, or not."""

from typing import Any

from pipeline.text.lexicon import LexicalAnalysis
from pipeline.text.normalize import fold, matching_form, source_span
from pipeline.text.terms import SUDACHI_MAX_CHARACTERS, blank_out, pieces


def stages(analysis: LexicalAnalysis, text: str) -> dict[str, Any]:
    """Return what becomes of a text, stage by stage; spans are offsets in the text that was given."""
    terms = analysis.terms
    folded, offsets = fold(text)
    marks = terms.marks(folded)
    form = analysis.questions.form(text)
    return {
        "text": text,
        "normalized": folded,
        "identifiers": [
            {"text": i.key, "kind": i.name, "type": i.type or None, "span": source_span(offsets, i.start, i.end)}
            for i in marks.identifiers
        ],
        "values": [
            {"text": v.key, "kind": v.kind, "wider": v.wider, "span": source_span(offsets, v.start, v.end)}
            for v in marks.values
        ],
        "morphemes": [m for m in _morphemes(analysis, blank_out(folded, marks.identifiers)) if m["surface"].strip()],
        "terms": [
            {"text": term, "kind": kind, "span": source_span(offsets, start, end)}
            for start, end, term, kind in terms.placed(folded, marks)
        ],
        "bigrams": terms.analyze(text).bigrams,
        "question": {
            "terms": form.terms,
            "synonyms": [{"text": term, "weight": weight} for term, weight in form.synonyms],
            "unknown_words": [run[0] + "".join(pair[1] for pair in run[1:]) for run in form.runs],
        },
        "matching_form": matching_form(folded),
    }


def _morphemes(analysis: LexicalAnalysis, folded: str) -> list[dict[str, Any]]:
    morphemes = analysis.terms.morphemes
    return [
        {
            "surface": morpheme.surface(),
            "part_of_speech": "-".join(level for level in morpheme.part_of_speech() if level != "*"),
            "normalized": morpheme.normalized_form(),
            "known": ("dictionary", "own")[morpheme.dictionary_id() > 0] if not morpheme.is_oov() else "unknown",
            "indexed": (entry.term or None) if (entry := morphemes.entry(morpheme)).content else None,
        }
        for _, piece in pieces(folded, SUDACHI_MAX_CHARACTERS)
        for morpheme in morphemes.tokenize(piece)
    ]
