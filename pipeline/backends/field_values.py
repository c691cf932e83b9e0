"""The text form of field values, by which every backend filters."""

from typing import Any


def field_texts(value: Any) -> tuple[str, ...]:
    """Return the texts that a filter may name for one value: each item of a list, `true`/`false`, `2` for 2.0.

    None gives no text, so no filter finds it.
    """
    if value is None:
        return ()
    if isinstance(value, (list, tuple)):
        return tuple(dict.fromkeys(text for item in value for text in field_texts(item)))
    if isinstance(value, bool):
        return ("true" if value else "false",)
    if isinstance(value, float) and value.is_integer():
        return (str(int(value)),)
    return (str(value),)
