"""Commands that the runbook and the page of compose show exist, with the options that they show."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

from ops.cli.main import app
from ops.stack import __main__ as stack

ROOT = Path(__file__).parents[2]
PAGES = ("ops/runbook.md", "compose/README.md")


def code(page: str) -> list[str]:
    """Everything that stands as code on a page: spans (which may break over lines) and lines of blocks."""
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^```\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    spans = re.findall(r"`([^`]+)`", re.sub(r"^```\n.*?^```", "", text, flags=re.MULTILINE | re.DOTALL))
    lines = [line.split("  #")[0] for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    return [" ".join(one.split()) for one in (*spans, *lines)]


def words_after(page: str, program: str) -> list[list[str]]:
    """The words that follow a program's name at the beginning of code."""
    matches = (re.match(program + r" ([^|;]+)", one) for one in code(page))
    return [shlex.split(match[1]) for match in matches if match]


def unknown(words: list[str]) -> str:
    """What of a `shinsen` command line does not exist; empty when all does."""
    command: Any = typer.main.get_command(app)
    rest = list(words)
    while hasattr(command, "commands"):
        name = rest.pop(0) if rest else ""
        if name not in command.commands:
            return f"no command {name!r} in {shlex.join(words)}"
        command = command.commands[name]
    options = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    return ", ".join(word for word in rest if word.startswith("--") and word not in options)


@pytest.mark.parametrize("page", PAGES)
def test_commands_of_shinsen_exist_with_their_options(page: str) -> None:
    shown = words_after(page, r"(?:\.venv/bin/)?shinsen")
    assert len(shown) >= (12 if page == "ops/runbook.md" else 1)
    assert [problem for words in shown if (problem := unknown(words))] == []


def test_a_command_that_does_not_exist_would_be_found() -> None:
    assert "no command 'explode'" in unknown(["explode"])
    assert unknown(["replay", "--into", "new", "--sideways"]) == "--sideways"


@pytest.mark.parametrize("page", PAGES)
def test_commands_of_ops_stack_exist(page: str) -> None:
    for words in words_after(page, r"(?:\.venv/bin/)?python -m ops\.stack"):
        assert words[0] in stack.TEXTS, words


@pytest.mark.parametrize("page", PAGES)
def test_targets_of_make_exist(page: str) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert {words[0] for words in words_after(page, "make")} <= targets


def test_settings_that_the_runbook_names_exist() -> None:
    from pipeline.settings import Settings

    named = set(re.findall(r"SHINSEN_[A-Z_]+", (ROOT / "ops/runbook.md").read_text(encoding="utf-8")))
    assert named <= {f"SHINSEN_{name.upper()}" for name in Settings.model_fields}
