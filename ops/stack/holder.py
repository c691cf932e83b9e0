"""Who runs the whole stack of a data directory: one process at a time, and how to end it."""

import contextlib
import fcntl
import json
import os
import signal
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from ops.stack import process, state
from ops.stack.errors import StackError
from ops.stack.process import Process

FILE = "holder.json"
# It ends up to eleven processes, each within half a minute, those of one wave side by side.
END_S = 150.0


@contextlib.contextmanager
def holding(data_dir: Path) -> Iterator[None]:
    """Be the one; raises StackError when another process is."""
    state.open_directory(data_dir)
    handle = os.open(data_dir / "holder.lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(handle)
        other = holder(data_dir)
        raise StackError(
            f"the stack of {data_dir} runs already (process {other.pid if other else 'unknown'})",
            todo="use it, or end it first: make stack-down",
        ) from error
    try:
        me = Process(os.getpid(), process.born(os.getpid()) or "")
        (data_dir / FILE).write_text(json.dumps(asdict(me)))
        yield
        (data_dir / FILE).unlink(missing_ok=True)
    finally:
        os.close(handle)


def holder(data_dir: Path) -> Process | None:
    """The process that runs the stack now."""
    try:
        row = json.loads((data_dir / FILE).read_text())
        found = Process(int(row["pid"]), str(row["born"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found if process.alive(found) else None


def end_holder(data_dir: Path) -> bool:
    """Ask the process that runs the stack to end everything, and wait for it; False when there is none."""
    found = holder(data_dir)
    if found is None or not process.send(found, signal.SIGTERM):
        return False
    if not process.wait_until(lambda: not process.alive(found), END_S):
        todo = f"see its terminal; kill -9 {found.pid}, then make stack-down once more"
        raise StackError(f"process {found.pid} runs the stack and has not ended within {END_S:.0f} s", todo=todo)
    return True
