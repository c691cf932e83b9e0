"""What was decoded from bytes, kept by these very bytes: equal bytes decode equally, so nothing kept can be stale."""

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar, overload

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


class Pairs(Sequence[str]):
    """A sequence of pairs of characters, kept as one text: a fifth of a tuple's memory, and quick to count in.

    Every third character is a space, so a pair stands in the text only where it was put.
    """

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        """Take the pairs with a space between each two."""
        self._text = text

    def __len__(self) -> int:
        """Return how many there are, repeats included."""
        return (len(self._text) + 1) // 3

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[str, ...]: ...
    def __getitem__(self, at: int | slice) -> str | tuple[str, ...]:
        """Return one, or some."""
        return tuple(self)[at]

    def __iter__(self) -> Iterator[str]:
        """Yield them in reading order."""
        return iter(self._text.split(" ") if self._text else ())

    def __contains__(self, pair: object) -> bool:
        """Say whether the pair is among them."""
        return isinstance(pair, str) and len(pair) == 2 and pair in self._text

    def count(self, pair: str) -> int:
        """Return how often it is."""
        return self._text.count(pair) if len(pair) == 2 else 0

    def __eq__(self, other: object) -> bool:
        """Compare with any sequence."""
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        """Hash as the tuple does."""
        return hash(tuple(self))


def packed_pairs(bigrams: Sequence[str]) -> Sequence[str]:
    """Return the same sequence, packed where all of them are pairs."""
    text = " ".join(bigrams)
    regular = (
        len(text) == max(3 * len(bigrams) - 1, 0) and not text[2::3].strip(" ") and " " not in text[::3] + text[1::3]
    )
    return Pairs(text) if regular else tuple(bigrams)
