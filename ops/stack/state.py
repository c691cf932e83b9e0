"""What a data directory remembers of its servers: ports, homes, processes (`stack.json`)."""

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from ops.stack.errors import StackError
from ops.stack.process import Process

FILE = "stack.json"
LOCK_WAIT_S = 600.0


@dataclass(frozen=True)
class Record:
    """One server of a data directory; ports and home never change, the process does."""

    ports: dict[str, int]
    home: str
    log: str
    process: Process | None = field(default=None)


def load(data_dir: Path) -> dict[str, Record]:
    """All records of a data directory; empty when nothing was ever started there."""
    path = data_dir / FILE
    try:
        rows = json.loads(path.read_text())
        return {name: _record(row) for name, row in rows.items()}
    except FileNotFoundError:
        return {}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        todo = "stop the servers by hand if any run, then delete the data directory"
        raise StackError(f"{path} is damaged: {error!r}", todo=todo) from error


def _record(row: dict[str, object]) -> Record:
    ports, process = row["ports"], row["process"]
    if not isinstance(ports, dict):
        raise TypeError("ports is no object")
    known = None
    if isinstance(process, dict):
        known = Process(int(process["pid"]), str(process["born"]))
    return Record({str(k): int(v) for k, v in ports.items()}, str(row["home"]), str(row["log"]), known)


def save(data_dir: Path, name: str, record: Record) -> None:
    """Replace the record of one server."""
    with locked(data_dir / "stack.json.lock"):
        records = {**load(data_dir), name: record}
        text = json.dumps({key: asdict(value) for key, value in sorted(records.items())}, indent=2)
        # Readers take no lock, so they must see the old file or the new one, never half of one.
        part = data_dir / "stack.json.part"
        part.write_text(text + "\n")
        part.replace(data_dir / FILE)


def open_directory(data_dir: Path) -> None:
    """Make the data directory; it ignores itself in git wherever it lies."""
    data_dir.mkdir(parents=True, exist_ok=True)
    ignore = data_dir / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n")


@contextlib.contextmanager
def locked(path: Path, seconds: float = LOCK_WAIT_S) -> Iterator[None]:
    """Hold a file lock; raise when another process or thread keeps it for too long."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    deadline = time.monotonic() + seconds
    try:
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if time.monotonic() > deadline:
                    todo = f"wait for the other `python -m ops.stack`, or see who holds it: fuser {path}"
                    raise StackError(f"{path} stayed locked for {seconds:.0f} s", todo=todo) from error
                time.sleep(0.05)
        yield
    finally:
        os.close(handle)
