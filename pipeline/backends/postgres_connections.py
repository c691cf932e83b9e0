"""A bounded number of connections to one PostgreSQL server, opened when they are needed and kept."""

import asyncio
import select
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import psycopg
from psycopg.pq import TransactionStatus

from pipeline.backends.sql_state.transaction import Row
from pipeline.errors import BackendUnavailable, InvalidConfiguration

Connection = psycopg.AsyncConnection[Row]

SETTINGS = "-c lock_timeout=10000 -c statement_timeout=60000 -c idle_in_transaction_session_timeout=60000"
"""Milliseconds: a lost client, or one that hangs, must not hold the others for ever."""
NO_ADDRESS = "PostgreSQL: SHINSEN_POSTGRES is no address; write postgresql://user:password@host:5432/database"
WAIT_S, CLOSE_S = 30, 10
"""How long for a free connection, and at the end for the busy ones."""


class Connections:
    """Hands out connections in autocommit mode. Not psycopg's own pool: that one hides the reason why a server cannot
    be reached behind a time-out, and comes back as late as its growing pauses say; here whoever asks connects.
    """

    def __init__(self, url: str, most: int) -> None:
        self._url, self._most = url, most
        self._permits = asyncio.Semaphore(most)
        self._open: set[Connection] = set()
        self._idle: list[Connection] = []
        self._closed = False

    @asynccontextmanager
    async def one(self) -> AsyncIterator[Connection]:
        """Lend a connection. Raises BackendUnavailable when all are busy for too long, psycopg.Error as it is."""
        if self._closed:
            raise BackendUnavailable("PostgreSQL: the store is closed; open it again")
        try:
            async with asyncio.timeout(WAIT_S):
                await self._permits.acquire()
        except TimeoutError as error:
            raise BackendUnavailable(
                f"PostgreSQL: all {self._most} connections were busy for {WAIT_S} s; try again, look for slow queries"
            ) from error
        try:
            connection = await self._take()
            try:
                yield connection
            finally:
                await self._give_back(connection)
        finally:
            self._permits.release()

    async def _take(self) -> Connection:
        while self._idle:
            connection = self._idle.pop()
            if not _has_ended(connection):
                return connection
            await self._discard(connection)
        try:
            # Raw cursors take PostgreSQL's own placeholders; the usual ones parse each statement of over 50 parameters
            # anew, two milliseconds for a batch.
            connection = await psycopg.AsyncConnection.connect(
                self._url, autocommit=True, connect_timeout=5, options=SETTINGS, cursor_factory=psycopg.AsyncRawCursor
            )
        except psycopg.ProgrammingError:  # its text quotes the address, and with it the password
            raise InvalidConfiguration(NO_ADDRESS) from None
        self._open.add(connection)
        return connection

    async def _give_back(self, connection: Connection) -> None:
        if connection.info.transaction_status is TransactionStatus.IDLE and not self._closed:
            self._idle.append(connection)
        else:
            await self._discard(connection)

    async def _discard(self, connection: Connection) -> None:
        self._open.discard(connection)
        await connection.close()

    async def close(self) -> None:
        """Let what runs finish, and close all connections; idempotent."""
        if self._closed:
            return
        self._closed = True
        with suppress(TimeoutError):  # then a busy connection is closed below, and its caller told so
            async with asyncio.timeout(CLOSE_S):
                for _ in range(self._most):
                    await self._permits.acquire()
        while self._open:
            await self._open.pop().close()


def _has_ended(connection: Connection) -> bool:
    """Whether the server closed an idle connection: then there is something to read, the end of it."""
    if connection.closed:
        return True
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return bool(poll.poll(0))
