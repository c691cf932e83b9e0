"""Which encoding a text file has: UTF-8 (with or without a byte order mark), UTF-16 with one, or CP932."""

import codecs
from pathlib import Path

BLOCK = 1 << 20
_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def detect_encoding(path: Path) -> str:
    """Return a codec that decodes the whole file strictly: `utf-8-sig`, `utf-16` or `cp932`.

    UTF-8 is tried first: Japanese text in CP932 is practically never valid UTF-8. Raises ValueError
    when none fits, OSError when the file cannot be read.
    """
    with path.open("rb") as file:
        marked = file.read(2) in _UTF16_MARKS
    for encoding in ("utf-16",) if marked else ("utf-8-sig", "cp932"):
        if _decodes(path, encoding):
            return encoding
    raise ValueError("is neither UTF-8 nor CP932 (Shift_JIS); save it as UTF-8")


def read_text(path: Path, encoding: str | None = None) -> str:
    """Return the whole text, line ends as newline characters. Raises ValueError, OSError."""
    text = path.read_bytes().decode(encoding or detect_encoding(path))
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _decodes(path: Path, encoding: str) -> bool:
    decoder = codecs.getincrementaldecoder(encoding)("strict")
    try:
        with path.open("rb") as file:
            while block := file.read(BLOCK):
                decoder.decode(block)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True
