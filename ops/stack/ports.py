"""TCP ports on the loopback interface."""

import random
import socket
from collections.abc import Iterable

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


def choose(names: Iterable[str], taken: Iterable[int]) -> dict[str, int]:
    """A free port for each name, none of them in `taken`."""
    used = set(taken)
    chosen: dict[str, int] = {}
    for name in names:
        port = _one(used)
        used.add(port)
        chosen[name] = port
    return chosen


def _one(used: set[int]) -> int:
    # Not seeded: two stacks that start at the same moment should look in different places.
    source = random.SystemRandom()
    for _ in range(TRIES):
        port = source.randrange(FIRST, LAST)
        if port not in used and is_free(port):
            return port
    raise StackError(
        f"no free port found between {FIRST} and {LAST} in {TRIES} tries",
        todo="see what listens there (`ss -ltnp`) and stop it",
    )
