"""One SQLite file behind an async face: one writer thread with group commit, some reader threads."""

import asyncio
import contextlib
import queue
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, InvalidStateError
from pathlib import Path
from typing import Any, TypeVar

import apsw

from pipeline.backends.sqlite_readers import Readers
from pipeline.errors import BackendUnavailable, InvalidConfiguration

T = TypeVar("T")
Setup = Callable[[apsw.Connection], None]

BUSY_MS = 10_000
"""How long a connection waits for a lock that another process holds."""
GROUP_JOBS, GROUP_SECONDS = 128, 0.05
"""A group commit takes no further job after so many, or after so long."""

_STORAGE_ERRORS: dict[type[apsw.Error], str] = {
    apsw.BusyError: "another process holds the database; stop it or wait",
    apsw.LockedError: "another connection holds the table; try again",
    apsw.FullError: "the disk is full; free space and try again",
    apsw.IOError: "the disk reported an error; check the volume and the system log",
    apsw.CorruptError: "the file is damaged; {mend}",
    apsw.NotADBError: "the file is no database; {mend}",
    apsw.CantOpenError: "the file cannot be opened; check the folder, its owner and free file handles",
    apsw.ReadOnlyError: "the file is read-only; check its owner and mode",
    apsw.PermissionsError: "access is denied; check the owner and mode of the folder",
    apsw.NoMemError: "out of memory; free some and try again",
    apsw.ProtocolError: "locking failed; the folder must be on a local disk",
}


def storage_error(error: BaseException, path: Path) -> BaseException:
    """Turn apsw's errors of disk, lock and file into BackendUnavailable; leave all others as they are."""
    for kind, advice in _STORAGE_ERRORS.items():
        if isinstance(error, kind):
            return BackendUnavailable(f"{path}: {error}; {advice.format(mend=_mend(path))}")
    return error


def _mend(path: Path) -> str:
    """Say how a damaged file is mended: all but the state can be made anew from it."""
    if path.name == "state.db":
        return "put it back from a backup: it alone holds the records"
    return f"remove {path.name} and start again: it is built anew from the records"


class _Job:
    """A queued write: its function, its future, and what it returned until the commit."""

    def __init__(self, run: Callable[[apsw.Connection], Any], committed: Callable[[Any], None] | None) -> None:
        self.run, self.committed = run, committed
        self.future: Future[Any] = Future()
        self.result: Any = None


class Database:
    """One SQLite file: WAL, synchronous=FULL, so that what `write` returned survives a power loss.

    `schema` runs once, on a new file, in one transaction with `version` as its user_version; `additions`
    at each opening (IF NOT EXISTS), for files that were made before there were these.
    `setup` runs on every connection (extensions, tokenizers, functions). Opening blocks for a few
    milliseconds; everything after it happens in this object's threads. Raises BackendUnavailable
    when the file cannot be used, InvalidConfiguration when another version of Shinsen made it.
    """

    def __init__(
        self,
        path: Path,
        schema: str,
        *,
        version: int = 1,
        additions: str = "",
        readers: int = 2,
        setup: Setup | None = None,
        cache_mib: int = 16,
        page_bytes: int = 4096,
    ) -> None:
        self.path = path
        self._setup, self._cache_mib, self._page_bytes = setup, cache_mib, page_bytes
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._closing = threading.Lock()
        self._closed = False
        self._connections: list[apsw.Connection] = []
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._writer = self._connect()
            self._create(schema, version, additions)
            reading = [self._connect() for _ in range(readers)]
            for reader in reading:
                reader.pragma("query_only", True)
        except (apsw.Error, OSError) as error:
            self._close_connections()
            raise _unavailable(error, path) from error
        except BaseException:
            self._close_connections()
            raise
        self._readers = Readers(reading, str(path))
        self._thread = threading.Thread(target=self._write_loop, name=f"{path.stem}-writer", daemon=True)
        self._thread.start()

    async def write(self, run: Callable[[apsw.Connection], T], committed: Callable[[T], None] | None = None) -> T:
        """Run `run` on the writer's connection inside a transaction; return its result once committed.

        `committed` gets the result right after the commit, in the writer's thread, even if the caller was cancelled.

        Queued writes run in order and may share one transaction (each in a savepoint of its own, so
        one that raises undoes only itself). A call cancelled before it began does nothing; one that
        began is finished. `run` must not begin or end transactions.
        """
        job = _Job(run, committed)
        with self._closing:
            self._check_open()
            self._jobs.put(job)
        result: T = await asyncio.wrap_future(job.future)
        return result

    async def read(self, run: Callable[[apsw.Connection], T]) -> T:
        """Run `run` on a reader's connection, all of its statements over one snapshot."""
        return await self._readers.submit(lambda connection: self._read(connection, run))

    async def look(self, run: Callable[[apsw.Connection], T]) -> T:
        """Run `run` on a reader's connection, each statement over what is committed then, which is a little quicker."""
        return await self._readers.submit(lambda connection: self._look(connection, run))

    async def close(self) -> None:
        """Finish queued writes, stop the threads, close the connections; idempotent."""
        with self._closing:
            if self._closed:
                return
            self._closed = True
            self._jobs.put(None)
        await asyncio.to_thread(self._join)

    async def destroy(self) -> None:
        """Close, and remove the file with its log; missing files are no error."""
        await self.close()
        for suffix in ("", "-wal", "-shm", "-journal"):
            self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)

    def _check_open(self) -> None:
        if self._closed:
            raise BackendUnavailable(f"{self.path}: the database is closed; open it again")

    def _connect(self) -> apsw.Connection:
        connection = apsw.Connection(str(self.path))
        self._connections.append(connection)
        connection.set_busy_timeout(BUSY_MS)
        connection.pragma("page_size", self._page_bytes)  # of a new file; before anything is written
        connection.pragma("journal_mode", "wal")
        connection.pragma("synchronous", "full")
        connection.pragma("foreign_keys", True)
        connection.pragma("cache_size", -1024 * self._cache_mib)
        connection.pragma("journal_size_limit", 64 << 20)
        if self._setup is not None:
            self._setup(connection)
        return connection

    def _create(self, schema: str, version: int, additions: str) -> None:
        self._writer.execute("BEGIN IMMEDIATE")
        with self._ended_transaction():
            there = self._writer.pragma("user_version")
            if there == 0:
                self._writer.execute(schema)
                self._writer.pragma("user_version", version)
            elif there != version:
                raise InvalidConfiguration(
                    f"{self.path}: made by another version (schema {there}, this one reads {version}); "
                    "move the data folder away and replay, or install the version that made it"
                )
            self._writer.execute(additions)

    @contextlib.contextmanager
    def _ended_transaction(self) -> Iterator[None]:
        try:
            yield
            self._writer.execute("COMMIT")
        except BaseException:
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")
            raise

    def _read(self, connection: apsw.Connection, run: Callable[[apsw.Connection], T]) -> T:
        def within(connection: apsw.Connection) -> T:
            connection.execute("BEGIN")
            try:
                return run(connection)
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

        return self._look(connection, within)

    def _look(self, connection: apsw.Connection, run: Callable[[apsw.Connection], T]) -> T:
        try:
            return run(connection)
        except apsw.Error as error:
            raise storage_error(error, self.path) from error

    def _write_loop(self) -> None:
        while (job := self._jobs.get()) is not None:
            if not self._write_group(job):
                return

    def _write_group(self, first: _Job) -> bool:
        """Run `first` and what is queued behind it as one transaction; False when asked to stop."""
        done: list[_Job] = []
        going_on = True
        try:
            self._writer.execute("BEGIN IMMEDIATE")
            with self._ended_transaction():
                job: _Job | None = first
                until = time.monotonic() + GROUP_SECONDS
                while job is not None:
                    self._run(job, done)
                    if len(done) >= GROUP_JOBS or time.monotonic() > until:
                        break
                    job, going_on = self._next_job()
        except BaseException as error:  # noqa: BLE001 - the thread must live; the callers get the error
            reason = _unavailable(error, self.path)
            for job in done or [first]:
                with contextlib.suppress(InvalidStateError):  # cancelled, or failed on its own before
                    job.future.set_exception(reason)
            return going_on
        for job in done:
            if job.committed is not None:
                job.committed(job.result)
            job.future.set_result(job.result)
        return going_on

    def _next_job(self) -> tuple[_Job | None, bool]:
        try:
            job = self._jobs.get_nowait()
        except queue.Empty:
            return None, True
        return job, job is not None

    def _run(self, job: _Job, done: list[_Job]) -> None:
        """Run one job in its savepoint. Raises only when the whole transaction was lost."""
        if not job.future.set_running_or_notify_cancel():
            return
        self._writer.execute("SAVEPOINT job")
        try:
            job.result = job.run(self._writer)
        except BaseException as error:  # goes to the caller of this job
            if not self._writer.in_transaction:  # disk full and its like undo everything
                done.append(job)
                raise
            self._writer.execute("ROLLBACK TO job")
            job.future.set_exception(storage_error(error, self.path))
        else:
            done.append(job)
        self._writer.execute("RELEASE job")

    def _join(self) -> None:
        self._thread.join()
        self._readers.close()
        self._close_connections()

    def _close_connections(self) -> None:
        for connection in self._connections:
            with contextlib.suppress(apsw.Error):
                connection.close()


def _unavailable(error: BaseException, path: Path) -> BaseException:
    """Like `storage_error`, but also for what the system says while opening."""
    if isinstance(error, OSError) and not isinstance(error, apsw.Error):
        return BackendUnavailable(f"{path}: {error}; check the folder, its owner and free space")
    return storage_error(error, path)
