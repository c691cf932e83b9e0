"""Units of amounts, read from schemas/patterns/units.yaml and from files of the user, which come first."""

import re
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec
import yaml

from pipeline.errors import InvalidConfiguration
from pipeline.text.normalize import fold
from pipeline.text.numerals import number_text

_ASCII_END = "(?![a-z0-9])"
_KATAKANA_END = "(?![ァ-ヺー])"
_DAY_END = "(?![本曜系米韓銀経])"
"""25日 before 本 is Japan."""
_FRACTION = "(?!の[0-9一二三四五六七八九十])"
_WORDS_OF_ENGLISH = frozenset({"a", "in", "s", "h"})


class Unit(msgspec.Struct, frozen=True, array_like=True):
    """A unit, what it is a multiple of, and words before the number with which a spelling means it."""

    unit: str
    spellings: tuple[str, ...] = ()
    of: tuple[str, str] | None = None
    """The other unit and how many of it one is, as a decimal number."""
    after: tuple[tuple[str, str], ...] = ()
    """Spelling to the word before the number: 毎分1500回転."""


class Units:
    """All spellings of all units. Immutable."""

    def __init__(self, units: Sequence[Unit]) -> None:
        """Take units; of two that claim one spelling the first wins."""
        self.units = tuple(units)
        self._unit_of: dict[str, str] = {}
        self._after: dict[tuple[str, str], str] = {}
        self._base: dict[str, tuple[str, Decimal]] = {}
        for one in units:
            for spelling in (one.unit, *one.spellings):
                self._unit_of.setdefault(fold(spelling)[0], one.unit)
            for spelling, word in one.after:
                self._after.setdefault((fold(spelling)[0], fold(word)[0]), one.unit)
            if one.of is not None:
                self._base.setdefault(one.unit, (one.of[0], Decimal(one.of[1])))
        self.spellings = spellings = sorted({*self._unit_of, *(s for s, _ in self._after)}, key=len, reverse=True)
        self.expression = "|".join(_spelled(s) for s in spellings)
        self.words_before = sorted({re.escape(word) for _, word in self._after}, key=len, reverse=True)

    def amount(self, number: Decimal, spelling: str, before: str = "") -> str:
        """Return an amount in one form, such as 1200円; `before` is a word before the number, if there is one."""
        unit = self._after.get((spelling, before)) or self._unit_of.get(spelling, spelling)
        while unit in self._base:
            unit, factor = self._base[unit]
            number *= factor
        return number_text(number) + unit


def _spelled(spelling: str) -> str:
    escaped, last = re.escape(spelling), spelling[-1]
    if last.isascii() and last.isalnum():
        space = "" if spelling in _WORDS_OF_ENGLISH else " ?"
        return space + escaped + _ASCII_END
    if "ァ" <= last <= "ー":
        return " ?" + escaped + _KATAKANA_END
    return " ?" + escaped + {"分": _FRACTION, "日": _DAY_END}.get(last, "")


@lru_cache(maxsize=1)
def product_units() -> Units:
    """Return the product's own units."""
    return load_units()


def load_units(paths: Sequence[Path] = ()) -> Units:
    """Read the `units` of the user's files and the product's. Raises InvalidConfiguration with file and reason."""
    own = [unit for path in paths for unit in read_units(path.name, _read(path))]
    text = files("schemas").joinpath("patterns/units.yaml").read_text("utf-8")
    return Units([*own, *read_units("units.yaml", text)])


def read_units(file: str, text: str) -> list[Unit]:
    """Read the `units` of one file; its other sections are not looked at."""
    try:
        root = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise InvalidConfiguration(f"{file}: not YAML: {error}") from error
    listed = root.get("units") if isinstance(root, dict) else None
    if listed is None:
        return []
    if not isinstance(listed, list):
        raise InvalidConfiguration(f"{file}: `units` must be a list of units")
    units = [_unit(f"{file}: unit {number}", raw) for number, raw in enumerate(listed, start=1)]
    _refuse_circles(file, units)
    return units


def _unit(where: str, raw: Any) -> Unit:
    if not isinstance(raw, dict) or not isinstance(raw.get("unit"), str) or not raw["unit"].strip():
        raise InvalidConfiguration(f"{where}: needs `unit`, a text")
    if unknown := raw.keys() - {"unit", "spellings", "of", "after"}:
        raise InvalidConfiguration(f"{where}: {sorted(map(str, unknown))[0]!r} is none of unit, spellings, of, after")
    spellings, of, after = raw.get("spellings", []), raw.get("of"), raw.get("after", {})
    if not isinstance(spellings, list) or not all(isinstance(s, str) and s.strip() for s in spellings):
        raise InvalidConfiguration(f"{where}: `spellings` must be a list of texts")
    if not isinstance(after, dict) or not all(isinstance(part, str) for pair in after.items() for part in pair):
        raise InvalidConfiguration(f"{where}: `after` must map a spelling to the word before the number")
    if of is None:
        return Unit(raw["unit"], tuple(spellings), None, tuple(after.items()))
    if not isinstance(of, dict) or len(of) != 1:
        raise InvalidConfiguration(f"{where}: `of` must map one unit to a number")
    other, number = next(iter(of.items()))
    try:
        factor = Decimal(str(number))
    except InvalidOperation:
        factor = Decimal(0)
    if not factor.is_finite() or factor <= 0:
        raise InvalidConfiguration(f"{where}: `of` must give a number above 0")
    return Unit(raw["unit"], tuple(spellings), (str(other), str(factor)), tuple(after.items()))


def _refuse_circles(file: str, units: Sequence[Unit]) -> None:
    base = {one.unit: one.of[0] for one in units if one.of is not None}
    for unit, first in base.items():
        seen, at = {unit}, first
        while at in base:
            if at in seen:
                raise InvalidConfiguration(f"{file}: unit {unit!r} is a multiple of itself by way of {at!r}")
            seen.add(at)
            at = base[at]


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidConfiguration(f"{path.name}: cannot be read: {error}") from error
