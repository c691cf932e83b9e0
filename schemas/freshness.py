"""Freshness tokens: opaque, URL-safe text for the (document, position) pairs that a reader wants to see."""

import base64
import binascii
import zlib
from collections.abc import Iterable

import msgspec

from schemas.outcome import TokenPart

MAX_PARTS = 20_000
MAX_TEXT = 1_000_000
"""Characters of a token; longer ones are refused before any decoding."""
MAX_PLAIN = 8_000_000
"""Bytes after unpacking, so that a small token cannot become a large one."""
_PREFIX = "f1."
_CHECKSUM = 4


class InvalidToken(ValueError):
    """The text is no freshness token of ours, or was changed on the way."""


def encode_token(parts: Iterable[TokenPart]) -> str:
    """Return the token of these parts: per document its newest position, in key order."""
    newest: dict[str, str] = {}
    for part in parts:
        newest[part.document] = max(newest.get(part.document, ""), part.position)
    plain = msgspec.msgpack.encode([TokenPart(document, newest[document]) for document in sorted(newest)])
    packed = zlib.compress(plain, 6)
    checksum = zlib.crc32(packed).to_bytes(_CHECKSUM, "big")
    return _PREFIX + base64.urlsafe_b64encode(checksum + packed).decode().rstrip("=")


def decode_token(text: str) -> list[TokenPart]:
    """Read a token back. Raises InvalidToken for anything that `encode_token` did not write."""
    packed = _checked(text)
    try:
        unpacker = zlib.decompressobj()
        plain = unpacker.decompress(packed, MAX_PLAIN)
        if unpacker.unconsumed_tail or not unpacker.eof or unpacker.unused_data:
            raise InvalidToken("the freshness token is too large")
        parts = msgspec.msgpack.decode(plain, type=list[TokenPart])
    except (zlib.error, msgspec.MsgspecError) as error:
        raise InvalidToken("the freshness token cannot be read") from error
    if len(parts) > MAX_PARTS:
        raise InvalidToken(f"the freshness token covers more than {MAX_PARTS} documents")
    return parts


def _checked(text: str) -> bytes:
    """Undo the text form and compare the checksum."""
    if len(text) > MAX_TEXT:
        raise InvalidToken(f"the freshness token is longer than {MAX_TEXT} characters")
    if not text.startswith(_PREFIX):
        raise InvalidToken("this is no freshness token: take it as POST /v1/events returned it")
    body = text.removeprefix(_PREFIX)
    try:
        raw = base64.b64decode((body + "=" * (-len(body) % 4)).encode("ascii"), altchars=b"-_", validate=True)
    except (binascii.Error, UnicodeEncodeError, ValueError) as error:
        raise InvalidToken("the freshness token was changed on the way") from error
    checksum, packed = raw[:_CHECKSUM], raw[_CHECKSUM:]
    if zlib.crc32(packed).to_bytes(_CHECKSUM, "big") != checksum:
        raise InvalidToken("the freshness token was changed on the way")
    return packed
