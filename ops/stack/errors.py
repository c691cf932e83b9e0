"""The one error of the local stack."""

from pathlib import Path

TAIL_LINES = 12


class StackError(Exception):
    """What happened, where the log is, and what to do next."""

    def __init__(self, what: str, *, todo: str, log: Path | None = None) -> None:
        """Build the message from its three parts; a log adds its last lines."""
        parts = [what]
        if log is not None:
            parts += [f"Log: {log}", *tail(log)]
        parts.append(f"Next: {todo}")
        super().__init__("\n".join(parts))
        self.what = what
        self.log = log
        self.todo = todo


def tail(log: Path, lines: int = TAIL_LINES) -> list[str]:
    """The last lines of a log, indented; empty when there is no log."""
    try:
        with log.open("rb") as stream:
            stream.seek(0, 2)
            stream.seek(max(0, stream.tell() - 16_384))
            text = stream.read().decode("utf-8", "replace")
    except OSError:
        return []
    return [f"  | {line[:300]}" for line in text.splitlines()[-lines:]]
