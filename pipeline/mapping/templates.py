"""Templates: text with column names in braces."""

from functools import lru_cache

import msgspec


class Piece(msgspec.Struct, frozen=True):
    """A stretch of a template: literal text, or the name of a column."""

    text: str
    is_column: bool


@lru_cache(maxsize=4096)
def parse_template(template: str) -> tuple[Piece, ...]:
    """Split a template at its placeholders. Raises ValueError when a brace has no partner or no name."""
    pieces: list[Piece] = []
    literal, at = "", 0
    while at < len(template):
        char = template[at]
        if template[at : at + 2] in ("{{", "}}"):
            literal, at = literal + char, at + 2
        elif char == "}":
            raise ValueError(f"'}}' without '{{' at character {at + 1} of {template!r}; write '}}}}' for a brace")
        elif char == "{":
            name, at = _name(template, at)
            pieces += [Piece(literal, False), Piece(name, True)]
            literal = ""
        else:
            literal, at = literal + char, at + 1
    return tuple(p for p in (*pieces, Piece(literal, False)) if p.text)


def columns_of(template: str) -> tuple[str, ...]:
    """Return the columns that a template names, in order."""
    return tuple(piece.text for piece in parse_template(template) if piece.is_column)


def _name(template: str, at: int) -> tuple[str, int]:
    end = template.find("}", at)
    name = template[at + 1 : end].strip() if end >= 0 else ""
    if not name or "{" in name:
        raise ValueError(f"'{{' at character {at + 1} of {template!r} starts no {{column}}; write '{{{{' for a brace")
    return name, end + 1
