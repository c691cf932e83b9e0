"""What the Java servers have in common."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from ops.stack.errors import StackError
from ops.stack.tools import which


def command(lib: Path, main: str, *arguments: str, heap: str = "512m", options: Sequence[str] = ()) -> list[str]:
    """The command line that runs a main class over all jars of a folder."""
    java = which("java")
    if java is None:
        raise StackError("java is not installed", todo="run `python -m ops.stack fetch --install`")
    return [java, f"-Xmx{heap}", *options, "-cp", f"{lib}/*", main, *arguments]


def properties(path: Path, rows: Mapping[str, str]) -> None:
    """Write a Java properties file."""
    # A backslash starts an escape in this format.
    text = "".join(f"{key}={value}\n".replace("\\", "\\\\") for key, value in rows.items())
    path.write_text(text)
