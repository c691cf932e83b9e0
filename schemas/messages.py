"""Messages between the stages of the stack."""

import msgspec

from schemas.document import Analysis, Chunk, Document, Stage
from schemas.record import Record


class Prepared(msgspec.Struct, kw_only=True):
    """A record ready to be applied at its stage; `document` is None for a delete."""

    record: Record
    stage: Stage
    document: Document | None = None
    chunks: list[Chunk] = []
    analyses: list[Analysis] = []
    title_terms: list[tuple[str, ...]] = []
    """Terms of title and headings, per chunk."""
    vectors: list[bytes] = []
    """One per chunk at stage full when there is an embedder, else empty."""
    sentence_vectors: list[bytes] = []
    """The same, of the chunks' sentences (`IndexedChunk.sentence_vectors`)."""
    unrefined: bool | None = None
    """Whether some of these are still to be made; None where nobody wants them."""
    missing: bool = False
    """True while model work is left to do."""
    withdrawn: bool = False
    """True when this version was refused: the older one must go, so that what stands depends on no history."""


class Analyzed(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A document on its way to the indexes of one generation."""

    document: str
    origins: tuple[str, ...] = ()
    """Events that end with it, whose outcomes may not have been announced; of one by reference, those known so far."""
    position: str = ""
    """Of the version by which they end."""
    prepared: Prepared | None = None
    """Without the record's columns and without vectors. None: *by reference*, the reader prepares what the state
    store has; so go large documents, and those that must be applied again (linked anew, left behind)."""
