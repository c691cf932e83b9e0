"""Reading identifier patterns from files: checked at start, refused with file and line."""

import re
from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path

import yaml

from pipeline.errors import InvalidConfiguration
from pipeline.text.identifiers import IdentifierPattern, Identifiers, compile_pattern
from pipeline.text.slow_patterns import TOO_SLOW, explodes

_SLOW_S = 0.05
_PROBE_LENGTHS = (12, 16, 20, 24, 120)
"""An exponential pattern is over the limit at 24 characters; at 120 also one of high power."""


def load_identifiers(paths: Sequence[Path] = ()) -> Identifiers:
    """Compile the product's patterns and those of the user's files, which come first.

    Raises InvalidConfiguration with file and line for a file that cannot be read, a wrong shape, a
    pattern that does not compile, matches nothing at all, or takes too long.
    """
    product = files("schemas").joinpath("patterns/identifiers.yaml")
    own = [pattern for path in paths for pattern in read_patterns(path.name, _read(path))]
    return Identifiers([*own, *read_patterns("identifiers.yaml", product.read_text("utf-8"))])


def read_patterns(file: str, text: str) -> list[IdentifierPattern]:
    """Read the `identifiers` of one patterns file; its other sections are not looked at."""
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        raise InvalidConfiguration(f"{file}: not YAML: {error}") from error
    listed = _value_of(root, "identifiers") if isinstance(root, yaml.MappingNode) else None
    if root is None or (isinstance(root, yaml.MappingNode) and listed is None):
        return []
    if not isinstance(listed, yaml.SequenceNode):
        raise InvalidConfiguration(f"{_at(file, listed or root)}: `identifiers` must be a list of patterns")
    return [_pattern(file, node) for node in listed.value]


def _pattern(file: str, node: yaml.Node) -> IdentifierPattern:
    fields = {}
    for field in ("name", "pattern", "type"):
        value = _value_of(node, field) if isinstance(node, yaml.MappingNode) else None
        if value is None and field == "type":
            continue
        if not isinstance(value, yaml.ScalarNode) or not value.value:
            raise InvalidConfiguration(f"{_at(file, value or node)}: a pattern needs `{field}`, a text")
        fields[field] = value.value
    pattern = IdentifierPattern(**fields)
    try:
        _probe(pattern.pattern)
    except (re.error, ValueError) as error:
        raise InvalidConfiguration(f"{_at(file, node)}: pattern `{pattern.name}`: {error}") from error
    return pattern


def _probe(pattern: str) -> None:
    """Refuse a pattern that matches the empty text or whose time explodes on repeated characters."""
    if re.compile(pattern).fullmatch(""):
        raise ValueError("it matches the empty text")
    compiled = compile_pattern(pattern)
    if explodes(compiled, (text for length in _PROBE_LENGTHS for text in _probes(pattern, length)), _SLOW_S):
        raise ValueError(f"it {TOO_SLOW}")


def _probes(pattern: str, length: int) -> Iterator[str]:
    own = [character.lower() for character in re.sub(r"\\.", "", pattern) if character.isalnum()]
    characters = list(dict.fromkeys(["a", "1", "-", *own]))[:8]
    for first in characters:
        for second in characters:
            yield (first + second) * (length // 2) + "!"
            yield (first + second) * (length // 2) + first + "_"


def _value_of(node: yaml.MappingNode, name: str) -> yaml.Node | None:
    return next((value for key, value in node.value if key.value == name), None)


def _at(file: str, node: yaml.Node) -> str:
    return f"{file}:{node.start_mark.line + 1}"


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidConfiguration(f"{path.name}: cannot be read: {error}") from error
