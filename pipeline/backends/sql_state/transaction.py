"""What the SQL of the state store needs of a database: a transaction that runs statements with `?` parameters."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Protocol, TypeVar

T = TypeVar("T")
Row = tuple[Any, ...]


class Transaction(Protocol):
    """A running transaction. Text compares by bytes, blobs are `bytes`, integers are 64 bit."""

    row_lock: str
    """What to append to a SELECT so that its rows stay as read: ` FOR UPDATE`, or nothing with one writer."""
    share_lock: str
    """The same for rows that many may hold while none may change them: ` FOR SHARE`, or nothing."""
    now: str
    """The SQL of the database's own time, RFC 3339 UTC with six digits after the second."""

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        """Run one statement and return its rows."""

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run one statement for each row of parameters, in order; over a network in one round trip."""


class SqlDatabase(Protocol):
    """Runs functions in transactions, off the event loop. Errors of the database are BackendUnavailable."""

    def write(self, work: Callable[[Transaction], T]) -> Awaitable[T]:
        """Run `work` in a read-write transaction that is durable when this returns."""

    def read(self, work: Callable[[Transaction], T]) -> Awaitable[T]:
        """Run `work` over one snapshot."""

    def look(self, work: Callable[[Transaction], T]) -> Awaitable[T]:
        """Run `work`, whose statements each see what is committed then: over a network a third of the trips of `read`.

        For one statement, and for several that look up rows which have nothing to do with each other.
        """


def marks(count: int) -> str:
    """Return `?, ?, ...` for an IN list."""
    return ", ".join("?" * count)


def value_rows(count: int, width: int) -> str:
    """Return `(?, ?), (?, ?), ...` for an INSERT of several rows."""
    return ", ".join([f"({marks(width)})"] * count)


def sliced(items: Sequence[T], size: int = 500) -> Iterable[Sequence[T]]:
    """Cut a list of keys for IN lists, below every database's limit of parameters."""
    return (items[i : i + size] for i in range(0, len(items), size))
