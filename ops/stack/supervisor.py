"""Starts again what has ended by itself, after longer and longer pauses, as long as its configuration is right."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ops.stack import process, servers, state
from ops.stack.errors import StackError, tail
from ops.stack.programs import WRONG_CONFIGURATION, Api, Worker
from ops.stack.server import Server

FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 30.0
# From then on (some three minutes of pauses) each end is one line: somebody has to look.
MANY_DEATHS = 10
# Whoever has lived that long begins anew with short pauses.
STEADY_S = 120.0
LOG_LINES = 6


@dataclass
class _Member:
    server: Server
    since: float
    deaths: int = 0
    retry_at: float | None = None
    given_up: bool = False


class Supervisor:
    """Looks after servers and programs that `ops.stack.servers` has started. Not for several threads."""

    def __init__(
        self,
        members: Sequence[Server],
        data_dir: Path,
        say: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`say` gets a message whenever something ends, starts again, or is given up for its configuration."""
        self._members = [_Member(server, clock()) for server in members]
        self._data_dir, self._say, self._clock = data_dir.resolve(), say, clock

    @property
    def given_up(self) -> list[str]:
        """Names of those that their configuration does not let start."""
        return [member.server.name for member in self._members if member.given_up]

    def tick(self) -> None:
        """Look at each member once, and start again whose pause is over."""
        for member in self._members:
            record = state.load(self._data_dir)[member.server.name]
            if record.process is not None and process.alive(record.process):
                member.given_up = False  # somebody may have started it by hand
                if self._clock() - member.since > STEADY_S:
                    member.deaths = 0
            elif member.given_up:
                continue
            elif member.retry_at is None:
                self._ended(member, record)
            elif self._clock() >= member.retry_at:
                self._start(member)

    def _ended(self, member: _Member, record: state.Record) -> None:
        member.deaths += 1
        name, log = member.server.name, Path(record.log)
        code = process.exit_code(record.process) if record.process is not None else None
        how = "ended" if code is None else f"ended with exit code {code}" if code >= 0 else f"was killed ({-code})"
        todo = f"put right what the log says, then: python -m ops.stack up {name} --data {self._data_dir}"
        if code == WRONG_CONFIGURATION and isinstance(member.server, Worker | Api):  # Go ends so when it crashes
            member.given_up = True
            why = f"{name} {how}; it is not started again: its configuration is wrong"
            self._say(str(StackError(why, log=log, todo=todo)))
            return
        pause = min(FIRST_PAUSE_S * 2 ** (member.deaths - 1), LONGEST_PAUSE_S)
        member.retry_at = self._clock() + pause
        said = f"{name} {how}; it starts again in {pause:.0f} s. Log: {log}"
        if member.deaths == MANY_DEATHS:
            said = str(StackError(f"{said}\nIt ended {member.deaths} times in a row; it goes on", log=log, todo=todo))
        elif member.deaths < MANY_DEATHS:
            said = "\n".join([said, *tail(log, LOG_LINES)])
        self._say(said)

    def _start(self, member: _Member) -> None:
        member.retry_at, member.since = None, self._clock()
        try:
            servers.start_these([member.server], self._data_dir, wait=False)
        except StackError as error:
            self._say(f"{member.server.name} could not be started: {error}")
        else:
            self._say(f"{member.server.name} started again (try {member.deaths})")
