"""One model worker: the process itself (`main`, run there) and the handle that the pool holds.

A worker is a fresh interpreter, never a fork. It talks over one socket: it reads jobs, loads a model
when the first job asks for it, and writes the answers. A thread of its own waits for the other end to
close, so that the process ends at once when its parent is gone, whatever the model is doing.
"""

import importlib
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from multiprocessing import Pipe
from multiprocessing.connection import Connection

import msgspec

Function = Callable[[Sequence[str]], list[bytes]]
"""What a worker runs: one result per text."""


class WorkerDied(Exception):
    """The process ended, or was killed after its time was over: the batch can be tried elsewhere."""


class WorkerRaised(Exception):
    """The model raised on this batch; the process lives on."""


class Definition(msgspec.Struct, frozen=True, array_like=True, tag="define"):
    """How a kind of job is loaded: `factory` is `module:function`, called there with `settings`."""

    kind: str
    factory: str
    settings: bytes


class _Job(msgspec.Struct, frozen=True, array_like=True, tag="job"):
    kind: str
    texts: list[str]


class _Answer(msgspec.Struct, frozen=True, array_like=True):
    results: list[bytes]
    error: str = ""


_TO_WORKER = msgspec.msgpack.Decoder(Definition | _Job)
_FROM_WORKER = msgspec.msgpack.Decoder(_Answer)
_ENCODER = msgspec.msgpack.Encoder()


class WorkerProcess:
    """A running worker, used by one thread at a time (`kill` may come from another)."""

    def __init__(self) -> None:
        """Start the process; it imports nothing but this module until its first job."""
        self._connection, theirs = Pipe(duplex=True)
        code = (
            f"import sys; sys.path[:] = {sys.path!r}; "
            f"from pipeline.model_workers.process import main; main({theirs.fileno()})"
        )
        self._process = subprocess.Popen(  # the protocol has its own socket: a chatty library cannot break it
            [sys.executable, "-c", code],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        theirs.close()
        self._answered = select.poll()  # the connection's own `poll` makes a selector each time: a tenth of a quick job
        self._answered.register(self._connection.fileno(), select.POLLIN)
        self._defined: set[str] = set()

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    def ask(self, definition: Definition, texts: Sequence[str], timeout_s: float) -> list[bytes]:
        """Run one batch; one result per text, in order. With no texts it only loads the model.

        Raises WorkerDied (the process is gone then) or WorkerRaised.
        """
        try:
            if definition.kind not in self._defined:
                self._connection.send_bytes(_ENCODER.encode(definition))
                self._defined.add(definition.kind)
            self._connection.send_bytes(_ENCODER.encode(_Job(definition.kind, list(texts))))
            if not self._answered.poll(timeout_s * 1000):
                raise WorkerDied(f"no answer within {timeout_s:.0f} s")
            answer = _FROM_WORKER.decode(self._connection.recv_bytes())
        except (EOFError, OSError, msgspec.DecodeError) as error:
            raise WorkerDied(str(error) or "the process ended") from error
        if answer.error:
            raise WorkerRaised(answer.error)
        return answer.results

    def kill(self) -> None:
        """End the process and wait until it is gone; idempotent. A worker keeps nothing that could be lost."""
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """Kill, and let go of the socket. Only from the thread that asks."""
        self.kill()
        self._connection.close()


def main(descriptor: int) -> None:
    """Serve jobs from the socket until it closes. Runs in the worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides
    connection = Connection(descriptor)
    threading.Thread(target=_watch, args=(descriptor,), daemon=True).start()
    definitions: dict[str, Definition] = {}
    functions: dict[str, Function] = {}
    while True:
        message = _TO_WORKER.decode(_received(connection))
        if isinstance(message, Definition):
            definitions[message.kind] = message
            continue
        try:
            if message.kind not in functions:
                functions[message.kind] = _load(definitions[message.kind])
            answer = _Answer(functions[message.kind](message.texts) if message.texts else [])
        except Exception as error:  # noqa: BLE001  whatever a model raises is told, the worker lives on
            answer = _Answer([], f"{type(error).__name__}: {error}"[:2000].encode("utf-8", "replace").decode())
        connection.send_bytes(_ENCODER.encode(answer))


def _received(connection: Connection) -> bytes:
    try:
        return connection.recv_bytes()
    except (EOFError, OSError):
        os._exit(0)


def _watch(descriptor: int) -> None:
    """End the process when the parent closed the socket or is dead: nobody waits for what is being computed.

    Asks for no event, so it sleeps through all jobs: only a hang-up is told unasked.
    """
    poll = select.poll()
    poll.register(descriptor, 0)
    poll.poll()
    os._exit(0)


def _load(definition: Definition) -> Function:
    module, _, name = definition.factory.partition(":")
    function: Function = getattr(importlib.import_module(module), name)(definition.settings)
    return function
