"""Processes that outlive us: spawn, recognise again, signal, wait for the end."""

import contextlib
import os
import pwd
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypedDict

from ops.stack.errors import StackError

REAP_S = 2.0
POLL_S = 0.1
KILL_WAIT_S = 15.0

# Our own children have to be reaped by us, or they stay as zombies for as long as the caller lives.
_children: dict[int, subprocess.Popen[bytes]] = {}
_ended: dict[int, int] = {}


@dataclass(frozen=True)
class Process:
    """A process id together with its birth, so that a recycled id is never taken for it."""

    pid: int
    born: str


@dataclass(frozen=True)
class Launch:
    """What to run, with which extra environment, as which user (None: as we are), and where (None: at home)."""

    argv: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)
    user: str | None = None
    cwd: Path | None = None


class Identity(TypedDict, total=False):
    """The part of `subprocess`'s arguments that says who runs the process."""

    user: int
    group: int
    extra_groups: list[int]


def born(pid: int) -> str | None:
    """When the process was born, as an opaque text; None when it is gone or a zombie."""
    stat = Path(f"/proc/{pid}/stat")
    if not Path("/proc/self/stat").exists():
        return _born_by_ps(pid)
    try:
        # The command name is in brackets and may hold brackets and spaces itself.
        fields = stat.read_text().rpartition(")")[2].split()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except (OSError, UnicodeDecodeError):
        return None
    return None if fields[0] in "ZX" else f"{boot}/{fields[19]}"


def _born_by_ps(pid: int) -> str | None:
    answer = subprocess.run(
        ["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, timeout=10, check=False
    )
    state, _, started = answer.stdout.strip().partition(" ")
    return None if not started or state.startswith("Z") else started.strip()


def spawn(launch: Launch, *, cwd: Path, log: Path) -> Process:
    """Start a process in a session of its own, with its output appended to the log."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as out:
        out.write(f"--- {time.strftime('%Y-%m-%d %H:%M:%S')} {' '.join(launch.argv)}\n".encode())
        out.flush()
        try:
            child = subprocess.Popen(
                list(launch.argv),
                cwd=launch.cwd or cwd,
                env={**os.environ, **launch.env},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                **as_user(launch.user),
            )
        except OSError as error:
            todo = "run `python -m ops.stack fetch` and start again"
            raise StackError(f"cannot run {launch.argv[0]}: {error}", log=log, todo=todo) from error
    _children[child.pid] = child
    _ended.pop(child.pid, None)
    return Process(child.pid, born(child.pid) or "gone at once")


def as_user(name: str | None) -> Identity:
    """Keyword arguments for `subprocess` that drop to a user; none when there is nothing to drop."""
    if name is None:
        return {}
    entry = pwd.getpwnam(name)
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


def alive(process: Process) -> bool:
    """Whether that very process still runs."""
    child = _children.get(process.pid)
    if child is not None and (code := child.poll()) is not None:
        del _children[process.pid]
        _ended[process.pid] = code
    return born(process.pid) == process.born


def exit_code(process: Process) -> int | None:
    """How a process that we have started ended (minus the signal's number); None when it runs or was not ours."""
    if alive(process):
        return None
    child = _children.pop(process.pid, None)
    if child is not None:
        # The first thread shows as ended a moment before the others are, and only then is there a code.
        with contextlib.suppress(subprocess.TimeoutExpired):
            _ended[process.pid] = child.wait(REAP_S)
    return _ended.get(process.pid)


def send(process: Process, number: signal.Signals) -> bool:
    """Signal the process; False when it is gone."""
    # A pidfd pins the process, so the id cannot be recycled between the check and the signal.
    with contextlib.ExitStack() as stack:
        try:
            handle = os.pidfd_open(process.pid) if hasattr(os, "pidfd_open") else None
            if handle is not None:
                stack.callback(os.close, handle)
            if not alive(process):
                return False
            if handle is None:
                os.kill(process.pid, number)
            else:
                signal.pidfd_send_signal(handle, number)
        except ProcessLookupError:
            return False
    return True


def wait_until(probe: Callable[[], bool], seconds: float, poll: float = POLL_S) -> bool:
    """Poll until the probe holds; False when the time is up."""
    deadline = time.monotonic() + seconds
    while not probe():
        if time.monotonic() >= deadline:
            return False
        time.sleep(poll)
    return True


def end(process: Process, number: signal.Signals, patience: float) -> bool:
    """Ask the process to end, and kill it when it does not in time; whether it is gone."""
    if not send(process, number):
        return True
    # A process that a fault test has frozen must run to see the signal.
    send(process, signal.SIGCONT)
    if wait_until(lambda: not alive(process), patience):
        return True
    send(process, signal.SIGKILL)
    return wait_until(lambda: not alive(process), KILL_WAIT_S)


def named_in(directory: Path, command: str) -> list[int]:
    """Ids of processes of that command name whose working directory is the given one (Linux only)."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            same = (entry / "comm").read_text().strip() == command
            if same and (entry / "cwd").readlink() == directory:
                found.append(int(entry.name))
        except OSError:
            continue
    return found
