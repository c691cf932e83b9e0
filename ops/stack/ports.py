"""TCP ports on the loopback interface."""

import random
import socket
from collections.abc import Iterable, Sequence

from ops.stack.errors import StackError

HOST = "127.0.0.1"
# Below the range that the kernel gives to outgoing connections (32768 and up on Linux): a port that a
# fault test has freed must still be free when its server comes back.
FIRST, LAST = 15_000, 32_000
TRIES = 500


def is_free(port: int) -> bool:
    """Whether a server could listen on the port now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def choose(names: Sequence[str], taken: Iterable[int]) -> dict[str, int]:
    """A run of free ports, one for each name in their order, none of them in `taken`."""
    used = set(taken)
    # Not seeded: two stacks that start at the same moment should look in different places.
    source = random.SystemRandom()
    for _ in range(TRIES):
        first = source.randrange(FIRST, LAST - len(names))
        run = range(first, first + len(names))
        if all(port not in used and is_free(port) for port in run):
            return dict(zip(names, run, strict=True))
    raise StackError(
        f"no {len(names)} free ports in a row found between {FIRST} and {LAST} in {TRIES} tries",
        todo="see what listens there (`ss -ltnp`) and stop it",
    )
