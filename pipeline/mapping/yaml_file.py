"""A YAML file that knows its lines: safe loading, and errors as `file:line: reason`."""

import re
from pathlib import Path
from typing import Any, TypeVar, get_args

import msgspec
import yaml

from pipeline.errors import InvalidConfiguration

T = TypeVar("T")
Where = tuple[str | int, ...]
"""Keys and list indexes from the top of the file."""

MAX_BYTES = 256 * 1024
MAX_NODES = 20_000
"""Counted with aliases written out, so that a few lines cannot grow into gigabytes."""


class YamlFile:
    """The content of one file, with the line of each part."""

    def __init__(self, path: Path, root: yaml.Node, content: Any) -> None:
        """Keep the file's name, its node tree and the plain values."""
        self.path, self.root, self.content = path, root, content

    def convert(self, kind: type[T]) -> T:
        """Convert the content to a msgspec type. Raises InvalidConfiguration with the line of the error."""
        try:
            return msgspec.convert(self.content, kind)
        except msgspec.ValidationError as error:
            reason, _, path = str(error).partition(" - at `")
            raise self.refusal(self._where(kind, path.rstrip("`"), reason), reason) from error

    def refusal(self, where: Where, reason: str) -> InvalidConfiguration:
        """Build the error for a place in the file."""
        node, line = self.root, self.root.start_mark.line
        for step in where:
            if (found := _child(node, step)) is None:
                break
            node, line = found
        name = ".".join(str(step) for step in where)
        return InvalidConfiguration(f"{self.path}:{line + 1}: {name + ': ' if name else ''}{reason}")

    def _where(self, kind: Any, path: str, reason: str) -> Where:
        """Turn msgspec's path into ours; `[...]` (any key of a table) is resolved by trying the entries."""
        steps: list[str | int] = []
        value = self.content
        for name, index in re.findall(r"\.([^.\[\]]+)|\[(\d+|\.\.\.)\]", path):
            step = name or (_culprit(kind, steps, value) if index == "..." else int(index))
            steps.append(step)
            value = _part(value, step)
        unknown = re.search(r"unknown field `(.+)`", reason)
        return (*steps, unknown.group(1)) if unknown else tuple(steps)


def read_yaml(path: Path) -> YamlFile:
    """Read one file safely. Raises InvalidConfiguration: unreadable, too large, no YAML, doubled keys."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InvalidConfiguration(f"{path}: cannot be read: {error.strerror}") from error
    if len(data) > MAX_BYTES:
        raise InvalidConfiguration(f"{path}: {len(data)} bytes are more than the {MAX_BYTES} of a mapping file")
    try:
        loader = yaml.SafeLoader(data.decode("utf-8-sig"))
        root = loader.get_single_node()
        if root is None:
            raise InvalidConfiguration(f"{path}:1: the file is empty")
        _check_tree(path, root)
        return YamlFile(path, root, loader.construct_document(root))
    except UnicodeDecodeError as error:
        raise InvalidConfiguration(f"{path}: is not UTF-8 (byte {error.start}); save it as UTF-8") from error
    except yaml.YAMLError as error:
        raise InvalidConfiguration(f"{path}:{_line_of(error)}: {_sentence(error)}") from error
    except (RecursionError, ValueError, TypeError) as error:
        raise InvalidConfiguration(f"{path}: cannot be read as YAML: {error}") from error


def _check_tree(path: Path, root: yaml.Node) -> None:
    waiting, seen = [root], 0
    while waiting:
        node = waiting.pop()
        seen += 1
        if seen > MAX_NODES:
            line = node.start_mark.line + 1
            raise InvalidConfiguration(f"{path}:{line}: more than {MAX_NODES} values (aliases count each time)")
        if isinstance(node, yaml.MappingNode):
            _check_keys(path, node)
            waiting += [child for pair in node.value for child in pair]
        elif isinstance(node, yaml.SequenceNode):
            waiting += node.value


def _check_keys(path: Path, node: yaml.MappingNode) -> None:
    seen: set[str] = set()
    for key, _ in node.value:
        name = key.value if isinstance(key, yaml.ScalarNode) else ""
        if name in seen:
            raise InvalidConfiguration(f"{path}:{key.start_mark.line + 1}: {name!r} is written twice")
        seen.add(name)


def _child(node: yaml.Node, step: str | int) -> tuple[yaml.Node, int] | None:
    """Return a part and its line: that of its key, which is the one people look for."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value == str(step):
                return value, key.start_mark.line
    elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        item = node.value[step]
        return item, item.start_mark.line
    return None


def _culprit(kind: Any, steps: list[str | int], table: Any) -> str:
    """Find the first entry of a table that cannot be converted; msgspec does not name it."""
    fields = {field.encode_name: field.type for field in msgspec.structs.fields(kind)} if len(steps) == 1 else {}
    entry = (*get_args(fields.get(str(steps[0]) if steps else "")), Any, Any)[1]
    for key, value in table.items() if isinstance(table, dict) else ():
        try:
            msgspec.convert(value, entry)
        except msgspec.ValidationError:
            return str(key)
    return ""


def _part(value: Any, step: str | int) -> Any:
    if isinstance(value, list):
        return value[step] if isinstance(step, int) and step < len(value) else None
    return value.get(step) if isinstance(value, dict) else None


def _line_of(error: yaml.YAMLError) -> int:
    mark = getattr(error, "problem_mark", None)
    return mark.line + 1 if mark else 1


def _sentence(error: yaml.YAMLError) -> str:
    return str(getattr(error, "problem", None) or error).splitlines()[0]
