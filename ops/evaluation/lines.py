"""Reading line by line: every complaint says file and line."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from ops.evaluation.golden import HIGHEST_GRADE, MOST_PASSAGES, BadGolden
from pipeline.errors import InvalidConfiguration

Shape = TypeVar("Shape")
LONGEST_LINE = 4 << 20


class LineCheck(msgspec.Struct, frozen=True):
    """Where we are."""

    path: Path
    line: int

    def error(self, reason: str) -> BadGolden:
        """Return the complaint about this line."""
        return BadGolden(self.path, self.line, reason)

    def grade(self, value: int | str) -> int:
        """Return a grade, 0..10; TREC's negative ones (spam, junk) are 0."""
        try:
            number = int(value)
        except ValueError:
            raise self.error(f"the grade {value!r} is no whole number") from None
        if number > HIGHEST_GRADE:
            raise self.error(f"the grade {number} is above {HIGHEST_GRADE}")
        return max(0, number)


def lines(path: Path) -> Iterator[tuple[LineCheck, str]]:
    """Yield the lines that are not blank. Raises BadGolden, and InvalidConfiguration when there is no file."""
    number = 0
    try:
        with path.open("rb") as file:
            for number, raw in enumerate(file, start=1):
                if len(raw) > LONGEST_LINE:
                    raise BadGolden(path, number, f"longer than {LONGEST_LINE:,} bytes")
                if number > MOST_PASSAGES:
                    raise BadGolden(path, number, f"more than {MOST_PASSAGES:,} lines")
                text = raw.decode("utf-8-sig" if number == 1 else "utf-8").strip("\r\n")
                if text.strip():
                    yield LineCheck(path, number), text
    except UnicodeDecodeError as error:
        raise BadGolden(path, number, f"not UTF-8 ({error.reason} at byte {error.start})") from error
    except OSError as error:
        raise InvalidConfiguration(f"{path} cannot be read: {error.strerror or error}") from error


def json_lines(path: Path, shape: type[Shape]) -> Iterator[tuple[LineCheck, Shape]]:
    """Yield JSON lines as `shape`; members that it does not have are passed over."""
    for check, text in lines(path):
        try:
            yield check, msgspec.json.decode(text, type=shape)
        except msgspec.MsgspecError as error:
            raise check.error(str(error)) from error


def unique(what: str) -> Callable[[LineCheck, str], None]:
    """Return a check that a value is given once only, and is not empty."""
    seen: dict[str, int] = {}

    def check(at: LineCheck, value: str) -> None:
        if not value:
            raise at.error(f"an empty {what}")
        if (first := seen.setdefault(value, at.line)) != at.line:
            raise at.error(f"the {what} {value!r} stands in line {first} already")

    return check
