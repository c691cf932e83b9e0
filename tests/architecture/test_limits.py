"""Sizes and names: what STYLE says of modules and functions, held."""

import ast
from pathlib import Path

import pytest

from tests.architecture.tree import PACKAGES, ROOT, modules, name_of, tree_of

MODULE_LINES, FUNCTION_LINES = 300, 40
DRAWERS = {"utils", "util", "helpers", "helper", "common", "misc", "manager", "managers"}


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_modules_and_functions_are_short(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").count("\n")
    assert lines <= MODULE_LINES, f"{lines} lines: split at {MODULE_LINES}"
    too_long = {
        f"{node.name} (line {node.lineno})": size
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (size := (node.end_lineno or node.lineno) - node.lineno + 1) > FUNCTION_LINES
    }
    assert not too_long, f"functions stop at {FUNCTION_LINES} lines"


def test_no_file_is_a_drawer() -> None:
    named = [
        name_of(path)
        for package in (*PACKAGES, "tests")
        for path in (ROOT / package).rglob("*")
        if path.name.split(".")[0].lower() in DRAWERS and "__pycache__" not in path.parts
    ]
    assert named == [], "name the concept that the file holds"


def test_every_package_says_what_it_is_for() -> None:
    silent = [name_of(path) for path in modules() if ast.get_docstring(tree_of(path)) is None and path.stat().st_size]
    assert silent == []
