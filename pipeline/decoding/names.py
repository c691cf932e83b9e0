"""Names of sources, collections and records, as all stores and addresses can take them."""

import re

from pipeline.errors import InvalidEvent

MAX_NAME, MAX_KEY = 100, 512
MAX_DOCUMENT = 1024
"""Bytes of source, collection and key together: with its names, a document must fit into a row of an index."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def check_name(name: str, what: str, pointer: str) -> str:
    """Return the name of a source or collection: 1 to 100 characters, no "/", no control characters."""
    if not 1 <= len(name) <= MAX_NAME or "/" in name or _CONTROL.search(name) or not name.strip():
        raise InvalidEvent(
            "wrong_type",
            f"{what} {name[:120]!r} must have 1 to {MAX_NAME} characters, without '/' and control characters",
            pointer=pointer,
        )
    return name


def check_key(key: str, pointer: str) -> str:
    """Return the key of a record: 1 to 512 characters, no control characters; "/" and Japanese are fine.

    See `check_document` for its bytes.
    """
    if not key.strip():
        raise InvalidEvent("missing_key", "the key is empty", pointer=pointer)
    if len(key) > MAX_KEY or _CONTROL.search(key):
        raise InvalidEvent(
            "wrong_type",
            f"the key {key[:60]!r} must have 1 to {MAX_KEY} characters, without control characters",
            pointer=pointer,
        )
    return key


def check_document(document: str) -> str:
    """Return the key of a document, which has at most MAX_DOCUMENT bytes of UTF-8."""
    if (size := len(document.encode("utf-8", "surrogatepass"))) > MAX_DOCUMENT:
        raise InvalidEvent(
            "wrong_type",
            f"source, collection and key have {size} bytes together, the limit is {MAX_DOCUMENT}: "
            f"{document[:60]!r}...; shorten the key",
        )
    return document


def join_key(parts: list[str]) -> str:
    """Join the parts of a composite key by "|"; in parts "|" is written "\\|" and "\\" is "\\\\".

    A key of one part stays as it is.
    """
    if len(parts) == 1:
        return parts[0]
    return "|".join(part.replace("\\", "\\\\").replace("|", "\\|") for part in parts)
