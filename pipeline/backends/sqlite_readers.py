"""Threads that read one SQLite file, each over a connection of its own."""

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import apsw

from pipeline.errors import BackendUnavailable

T = TypeVar("T")
Run = Callable[[apsw.Connection], Any]
_Job = tuple[asyncio.AbstractEventLoop, asyncio.Future[Any], Run]


class Readers:
    """Runs functions in its threads, in the order asked; usable from any event loop.

    A search hands over several times, so this is counted in microseconds: futures of the loop itself and no
    executor take a third of what `wrap_future` over a pool of threads does.
    """

    def __init__(self, connections: Sequence[apsw.Connection], name: str) -> None:
        """Start a thread for each connection."""
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._name, self._closing, self._closed = name, threading.Lock(), False
        self._threads = [
            threading.Thread(target=self._serve, args=(connection,), name=f"{name}-reader-{n}", daemon=True)
            for n, connection in enumerate(connections)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, run: Callable[[apsw.Connection], T]) -> asyncio.Future[T]:
        """Return what `run` will give. A future that is cancelled before its turn is passed over."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        with self._closing:
            if self._closed:
                raise BackendUnavailable(f"{self._name}: the database is closed; open it again")
            self._jobs.put((loop, future, run))
        return future

    def close(self) -> None:
        """Finish what was asked, and wait for the threads; idempotent."""
        with self._closing:
            if not self._closed:
                self._closed = True
                for _ in self._threads:
                    self._jobs.put(None)
        for thread in self._threads:
            thread.join()

    def _serve(self, connection: apsw.Connection) -> None:
        while (job := self._jobs.get()) is not None:
            _work(connection, *job)
            del job  # while this thread waits, it holds nothing of the last request


def _work(connection: apsw.Connection, loop: asyncio.AbstractEventLoop, future: asyncio.Future[Any], run: Run) -> None:
    if future.cancelled():
        return
    try:
        result = run(connection)
    except BaseException as error:  # noqa: BLE001 - the thread must live; the caller gets the error
        _tell(loop, future, None, error)
    else:
        _tell(loop, future, result, None)


def _tell(
    loop: asyncio.AbstractEventLoop, future: asyncio.Future[Any], result: Any, failure: BaseException | None
) -> None:
    with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
        loop.call_soon_threadsafe(_settle, future, result, failure)


def _settle(future: asyncio.Future[Any], result: Any, failure: BaseException | None) -> None:
    if future.done():  # its caller has gone away
        return
    if failure is None:
        future.set_result(result)
    else:
        future.set_exception(failure)
