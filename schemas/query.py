"""What an asker sends and gets: `POST /v1/query` and `POST /v1/search`."""

from typing import Annotated, Any, Literal

import msgspec

from schemas.around import ContextPart, Expand, Snippet
from schemas.document import Stage

Source = Literal["auto", "db", "vector", "graph", "all", "direct", "web"]
Mode = Literal["auto", "plain", "self_rag", "crag", "decompose"]
Fusion = Literal["auto", "rrf", "relative", "weighted", "distribution"]
StepOutcome = Literal["ok", "empty", "weak", "error", "timeout"]

MAX_QUESTION = 10_000
MAX_TOP_K = 100
MAX_OFFSET = 1_000
MAX_CURSOR = 300_000

Question = Annotated[str, msgspec.Meta(max_length=MAX_QUESTION)]
TopK = Annotated[int, msgspec.Meta(ge=1, le=MAX_TOP_K)]
Scalar = str | int | float | bool
OneOrMany = str | Annotated[list[str], msgspec.Meta(max_length=100)]


class TimeRange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Bounds on a time: dates or RFC 3339; naive ones are Asia/Tokyo."""

    gte: str | None = None
    gt: str | None = None
    lt: str | None = None
    lte: str | None = None


class Filters(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which documents may be found; all given members must match, one value of each is enough."""

    source: OneOrMany = []
    collection: OneOrMany = []
    type: OneOrMany = []
    document: OneOrMany = []
    updated_at: TimeRange | None = None
    fields: dict[str, Scalar | list[Scalar]] = {}
    """Mapped field to the value or values, one of which must match."""


class SourcePosition(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A source's own position, which the stack can wait for."""

    source: str
    position: str


class QueryRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A question."""

    question: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_QUESTION)]
    source: Source = "auto"
    mode: Mode = "auto"
    top_k: TopK = 10
    filters: Filters | None = None
    min_freshness: str | SourcePosition | None = None
    wait: str = "5s"
    session_id: str | None = None
    explain: bool = False
    as_of: str | None = None


class SearchRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Retrieval alone."""

    query: Question
    top_k: TopK = 10
    offset: Annotated[int, msgspec.Meta(ge=0, le=MAX_OFFSET)] = 0
    filters: Filters | None = None
    alpha: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    """Weight of the dense list; None: by the type of the query."""
    fusion: Fusion = "auto"
    rerank: bool = True
    explain: bool = False
    expand: Expand | None = None
    """Show what stands around each hit."""
    snippet: Annotated[int, msgspec.Meta(ge=40, le=1_000)] | None = None
    """Give of each hit also its best part, of at most so many characters."""
    cursor: Annotated[str, msgspec.Meta(max_length=MAX_CURSOR)] | None = None
    """Stable pages: "" for the first one, then `next` of the page before with the same query and filters. The order
    stays that of the first page while documents change; without `offset`."""
    min_freshness: str | SourcePosition | None = None
    wait: str = "5s"


class DocumentInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The document behind a hit or a piece of evidence, as its manifest has it."""

    key: str
    title: str
    version: str
    position: str
    updated_at: str
    type: str
    stage: Stage


class HitParts(msgspec.Struct, frozen=True, kw_only=True):
    """How a hit was found: its rank in each list (from 1), None when it was not in it."""

    bm25: int | None = None
    dense: int | None = None
    exact_identifier: bool = False
    """The text, its title or its headings hold an asked identifier."""
    named_identifier: bool = False
    """The document names itself by an asked identifier that this text does not hold."""
    rerank: float | None = None
    """The second stage's score on its model's own scale; None when it was not reranked."""
    lists: dict[str, float] = {}
    """Scores in the further lists that are configured (`sparse`, `late`); empty on later pages of a cursor."""


class SearchHit(msgspec.Struct, frozen=True, kw_only=True):
    """A chunk found."""

    chunk_id: str
    document: DocumentInfo
    text: str
    span: tuple[int, int]
    """Offsets of `text` in the document's body."""
    highlights: list[tuple[int, int]]
    """Offsets in `text`."""
    score: float
    stage: Stage
    parts: HitParts
    context: list[ContextPart] | None = None
    """With `expand`: what stands around the hit, in reading order, the hit within one of the parts."""
    snippet: Snippet | None = None


class Suggestion(msgspec.Struct, frozen=True, kw_only=True):
    """A name of an entity that may have been meant."""

    text: str
    entities: list[str]
    """Ids of what goes by this name, as far as the asker may know."""
    match: Literal["same", "reading", "prefix", "spelling"]
    """Written the same but for width and kana; read the same; begins so; or one or two slips away."""


class SearchResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The hits, best first."""

    hits: list[SearchHit]
    query_type: str
    total: int
    """Hits the asker may see among the candidates looked at (at most a few hundred)."""
    facets: dict[str, dict[str, int]]
    """Documents among those candidates by source, collection and type; with a cursor on the first page only."""
    timings_ms: dict[str, float]
    next: str | None = None
    """The cursor of the next page, where one was asked for and may have hits; good for an hour from the first page."""
    suggestions: list[Suggestion] = []
    """Names that may have been meant, where little was found."""
    warnings: list[str] = []
    explanation: dict[str, Any] | None = None


class PathStep(msgspec.Struct, frozen=True, kw_only=True):
    """One edge that was walked; `out` from subject to object, `in` the other way."""

    subject: str
    predicate: str
    object: str
    direction: Literal["out", "in"]
    document: str
    """The document that states it."""
    confidence: float
    label: str = ""
    """The predicate for people."""


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """What an answer stands on."""

    n: int
    kind: Literal["chunk", "record", "fact", "web"]
    document: DocumentInfo
    chunk_id: str
    text: str
    span: tuple[int, int] | None
    """Offsets of `text` in the document's body; None for a record."""
    score: float
    sources: list[str]
    stage: Stage
    path: list[PathStep] = []
    fields: dict[str, Any] | None = None


class CitedSpan(msgspec.Struct, frozen=True, kw_only=True):
    """Where a claim stands in a document's body."""

    n: int
    document: str
    span: tuple[int, int]


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """One sentence of an answer with the evidence that supports it."""

    text: str
    citations: list[int]
    spans: list[CitedSpan] = []


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer."""

    text: str
    answerable: bool
    groundedness: float
    claims: list[Claim]


class RouteEntity(msgspec.Struct, frozen=True, kw_only=True):
    """An entity that the question names."""

    id: str
    label: str
    type: str


class RouteStep(msgspec.Struct, frozen=True, kw_only=True):
    """One source asked."""

    source: str
    hits: int
    ms: float
    outcome: StepOutcome


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """Where the question went and why."""

    strategy: str
    by: Literal["rule", "examples", "llm", "override"]
    confidence: float
    reason: str
    rewritten_query: str
    entities: list[RouteEntity]
    steps: list[RouteStep] = []


class FreshnessInfo(msgspec.Struct, frozen=True, kw_only=True):
    """How far each store was when the answer was made."""

    records: str
    chunks: str
    text: str
    graph: str
    pending: int
    waited_ms: float = 0.0


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """What language models cost."""

    llm_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0


class QueryResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a question, with everything it stands on."""

    question: str
    answer: Answer
    route: Route
    evidence: list[Evidence]
    freshness: FreshnessInfo
    usage: Usage
    timings_ms: dict[str, float]
    warnings: list[str]
    suggestions: list[Suggestion] = []
    """Names that may have been meant, where no answer was found."""
    session_id: str | None = None
    explanation: dict[str, Any] | None = None
