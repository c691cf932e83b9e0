"""The port: taken early, before models load, and a clear word when somebody else has it."""

import errno
import socket
from ipaddress import ip_address
from pathlib import Path

from pipeline.errors import ShinsenError

_LISTEN = "0A"


class PortTaken(ShinsenError):
    """Another process listens there: stop it or take another port."""


class AddressRefused(ShinsenError):
    """The address cannot be bound: give another."""


class NotLoopback(ShinsenError):
    """Other machines could reach the address, and nothing would ask who they are."""


def bind(host: str, port: int) -> socket.socket:
    """Return a listening socket. Raises NotLoopback, PortTaken, AddressRefused."""
    if not _is_loopback(host):
        raise NotLoopback(
            f"{host} can be reached from other machines, and this version has no access control: listen at 127.0.0.1 "
            "and put a reverse proxy with authentication before it"
        )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # The protocol by name: asyncio turns the wait for acknowledgements off only where it reads TCP.
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((host, port))
        sock.listen(128)
    except OSError as error:
        sock.close()
        if error.errno != errno.EADDRINUSE:
            raise AddressRefused(f"cannot listen at {host}:{port}: {error.strerror}; give another --port") from error
        pid = listener(port)
        who = f"process {pid} ({_command(pid)})" if pid else "another process"
        raise PortTaken(
            f"port {port} is taken by {who}: stop it, or take another port with --port (make run PORT={port + 1})"
        ) from None
    sock.setblocking(False)
    return sock


def url_of(sock: socket.socket) -> str:
    """Return the address of a listening socket."""
    host, port = sock.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def listener(port: int) -> int | None:
    """Return the process that listens on a TCP port of this machine; None where /proc does not tell."""
    inodes = {f"socket:[{inode}]" for table in ("tcp", "tcp6") for inode in _listening(Path("/proc/net") / table, port)}
    if not inodes:
        return None
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if any(str(fd.readlink()) in inodes for fd in (process / "fd").iterdir()):
                return int(process.name)
        except OSError:
            continue  # it ended meanwhile, or belongs to another user
    return None


def _listening(table: Path, port: int) -> list[str]:
    try:
        lines = table.read_text().splitlines()[1:]
    except OSError:
        return []
    rows = [line.split() for line in lines]
    return [row[9] for row in rows if row[3] == _LISTEN and int(row[1].rsplit(":", 1)[1], 16) == port]


def _command(pid: int) -> str:
    try:
        return (
            (Path("/proc") / str(pid) / "cmdline")
            .read_bytes()
            .replace(b"\0", b" ")
            .decode(errors="replace")[:60]
            .strip()
        )
    except OSError:
        return "?"


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
