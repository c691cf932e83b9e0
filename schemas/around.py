"""What is shown around a hit of a search, and of it."""

from typing import Annotated

import msgspec


class Expand(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to show around each hit."""

    neighbours: Annotated[int, msgspec.Meta(ge=0, le=5)] = 0
    """Chunks on each side."""
    parent: bool = False
    """The whole document, the nearest chunks first, as far as `max_characters` reach."""
    max_characters: Annotated[int, msgspec.Meta(ge=200, le=20_000)] = 4_000
    """From the first to the last character of what is shown of one document, the hit itself always."""


class ContextPart(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a document's body."""

    text: str
    span: tuple[int, int]
    """Offsets of `text` in the body."""


class Snippet(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a hit that shows best why it was found."""

    text: str
    span: tuple[int, int]
    """Offsets of `text` in the document's body."""
    highlights: list[tuple[int, int]]
    """Offsets in this `text`."""
