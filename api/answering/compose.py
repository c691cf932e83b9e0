"""Composition: claims with citations, the answer's text, and how much of it stands in the evidence."""

from collections.abc import Mapping, Sequence

from api.answering.extract import Scored
from api.retrieval.filters import texts
from api.retrieval.passages import Passage
from api.retrieval.reader import document_info
from pipeline.text.normalize import fold
from schemas.query import Answer, CitedSpan, Claim, Evidence

_NOTHING_JA = "登録されている文書の中に、この質問の答えになる記述は見つかりませんでした。"
_NOTHING_EN = "No indexed document holds a passage that answers this question."
_SHORTEST_LABEL = 2


def evidence_of(passages: Sequence[Passage]) -> list[Evidence]:
    """Number the passages."""
    return [
        Evidence(
            n=n,
            kind=passage.kind,
            document=document_info(passage.candidate.manifest),
            chunk_id=passage.candidate.id,
            text=passage.text,
            span=(passage.candidate.ref.start, passage.candidate.ref.end),
            score=passage.score,
            sources=list(passage.sources),
            stage=passage.candidate.manifest.stage,
            path=list(passage.path),
            fields=passage.fields,
        )
        for n, passage in enumerate(passages, 1)
    ]


def claims_of(chosen: Sequence[Scored], evidence: Sequence[Evidence]) -> list[Claim]:
    """Turn the chosen sentences into claims that cite every piece of evidence holding them."""
    claims: dict[str, Claim] = {}
    for one in chosen:
        text = one.sentence.text
        if text not in claims:
            spans = _spans(one, text, evidence)
            claims[text] = Claim(text=text, citations=[span.n for span in spans], spans=spans)
    return list(claims.values())


def _spans(one: Scored, text: str, evidence: Sequence[Evidence]) -> list[CitedSpan]:
    own = evidence[one.passage]
    others = [piece for piece in evidence if piece is not own and text in piece.text]
    places = [(own, one.sentence.start), *((piece, piece.text.index(text)) for piece in others)]
    return [
        CitedSpan(n=piece.n, document=piece.document.key, span=(piece.span[0] + at, piece.span[0] + at + len(text)))
        for piece, at in places
        if piece.span is not None
    ]


def field_claims(question: str, evidence: Sequence[Evidence], labels: Mapping[str, Mapping[str, str]]) -> list[Claim]:
    """Build sentences from a record's fields whose label the question names; `labels` by document and field."""
    folded = fold(question)[0]
    claims: dict[str, Claim] = {}
    for piece in evidence:
        for name, value in (piece.fields or {}).items():
            label = labels.get(piece.document.key, {}).get(name, name)
            if len(label) < _SHORTEST_LABEL or fold(label)[0] not in folded or not texts(value):
                continue
            text = f"{piece.document.title}の{label}は{'、'.join(texts(value))}。"
            claims.setdefault(text, Claim(text=text, citations=[piece.n]))
    return list(claims.values())


def answer_of(question: str, claims: Sequence[Claim], evidence: Sequence[Evidence]) -> Answer:
    """Write the answer."""
    if not claims:
        text = _NOTHING_EN if question.isascii() else _NOTHING_JA
        return Answer(text=text, answerable=False, groundedness=0.0, claims=[])
    text = "\n".join(claim.text + "".join(f"[{n}]" for n in claim.citations) for claim in claims)
    return Answer(text=text, answerable=True, groundedness=groundedness(claims, evidence), claims=list(claims))


def groundedness(claims: Sequence[Claim], evidence: Sequence[Evidence]) -> float:
    """Return the share of claims that stand in the evidence they cite."""
    pieces = {piece.n: piece for piece in evidence}
    grounded = sum(any(_stands(claim, pieces[n]) for n in claim.citations if n in pieces) for claim in claims)
    return round(grounded / len(claims), 4) if claims else 0.0


def _stands(claim: Claim, piece: Evidence) -> bool:
    """Word for word in the text; a sentence built from a field ends with that field's value."""
    if claim.text in piece.text:
        return True
    fields = piece.fields or {}
    return any(claim.text.endswith(f"は{'、'.join(texts(value))}。") for value in fields.values() if texts(value))
