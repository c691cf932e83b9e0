"""The source tree, as the architecture tests read it."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("schemas", "pipeline", "api", "ops")


def modules(*packages: str) -> list[Path]:
    """All modules of our packages (all four by default)."""
    return sorted(path for package in packages or PACKAGES for path in (ROOT / package).rglob("*.py"))


def name_of(path: Path) -> str:
    """The path from the root, for messages and parameters."""
    return path.relative_to(ROOT).as_posix()


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=name_of(path))


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Each imported module with its line; names of `from x import y` count as `x.y`."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)
