"""What was decoded from bytes, kept by these very bytes: equal bytes decode equally, so nothing kept can be stale."""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class DecodedCache(Generic[T]):
    """Calls `decode` once for the same blobs while they are in use. Safe from any thread.

    Holds the decoded forms of up to `most_bytes` of blobs, in two halves: where the newer one is full, the older one
    is dropped, and what was asked for since stands in the newer one. That is nearly least recently used, without the
    price of an order. The objects are shared by all who ask: they must not be changed.
    """

    def __init__(self, decode: Callable[..., T], most_bytes: int) -> None:
        """Take the function of one or more blobs."""
        self._decode, self._most = decode, most_bytes
        self._newer: dict[tuple[bytes, ...], T] = {}
        self._older: dict[tuple[bytes, ...], T] = {}
        self._held = 0
        self._lock = threading.Lock()

    def __call__(self, *blobs: bytes) -> T:
        """Return what these blobs decode to."""
        found = self._newer.get(blobs)
        if found is not None:
            return found
        found = self._older.get(blobs)
        if found is None:
            found = self._decode(*blobs)
        with self._lock:
            if blobs not in self._newer:
                self._newer[blobs] = found
                self._held += sum(map(len, blobs))
            if self._held * 2 > self._most:
                self._older, self._newer, self._held = self._newer, {}, 0
        return found
