"""Command line: `python -m ops.stack fetch|up|status|down [NAMES]`."""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from ops.stack import servers
from ops.stack.errors import StackError
from ops.stack.fetch import CACHE_VARIABLE, default_cache
from ops.stack.server import Endpoint

DEFAULT_DATA = Path(__file__).resolve().parents[2] / ".stack"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit status is 0, or 1 with a message on standard error."""
    options = _parser().parse_args(arguments)
    names = tuple(options.names)
    try:
        if options.command == "fetch":
            return _fetch(names or servers.DEFAULT, options)
        if options.command == "up":
            return _up(names or servers.DEFAULT, options)
        if options.command == "status":
            return _status(names, options.data)
        return _down(names, options)
    except StackError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted; what this command had started is stopped again", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m ops.stack", description="The real servers without Docker.")
    commands = parser.add_subparsers(dest="command", required=True)
    names = f"{', '.join(servers.SERVERS)} (default: all but connect)"
    texts = {
        "fetch": "fetch programs into the cache",
        "up": "fetch what is missing, start, and wait until healthy",
        "status": "show what runs; exit status 1 when something is not healthy",
        "down": "stop; data and ports stay",
    }
    for name, text in texts.items():
        command = commands.add_parser(name, help=text, description=text)
        command.add_argument("names", nargs="*", metavar="NAME", help=names)
        if name != "fetch":
            command.add_argument("--data", type=Path, default=DEFAULT_DATA, help="data directory (%(default)s)")
        if name in {"fetch", "up"}:
            cache_help = f"where programs are kept (${CACHE_VARIABLE}, now %(default)s)"
            command.add_argument("--cache", type=Path, default=default_cache(), help=cache_help)
            # None leaves the choice to the API: yes in CI, no elsewhere.
            install = "let apt-get install missing packages (always when CI=true)"
            command.add_argument("--install", action="store_true", default=None, help=install)
        if name == "down":
            command.add_argument("--purge", action="store_true", help="stop everything and delete all data")
    return parser


def _fetch(names: Sequence[str], options: argparse.Namespace) -> int:
    for name in names:
        began = time.monotonic()
        servers.fetch([name], cache=options.cache.resolve(), install=options.install)
        print(f"{name}: fetched ({time.monotonic() - began:.1f} s)", flush=True)
    return 0


def _up(names: Sequence[str], options: argparse.Namespace) -> int:
    began = time.monotonic()
    running = servers.start(names, options.data, cache=options.cache.resolve(), install=options.install)
    for endpoint in running.values():
        _show(endpoint, "healthy")
    print(f"up in {time.monotonic() - began:.1f} s; data and logs: {options.data}")
    return 0


def _status(names: Sequence[str], data: Path) -> int:
    rows = [row for row in servers.status(data) if not names or row.name in names]
    for row in rows:
        if row.endpoint is not None:
            _show(row.endpoint, row.condition)
        else:
            print(f"{row.name:<10} {row.condition:<14} log {row.log}")
    if not rows:
        print(f"nothing was started in {data}")
    return 0 if rows and all(row.condition == "healthy" for row in rows) else 1


def _show(endpoint: Endpoint, condition: str) -> None:
    print(f"{endpoint.name:<10} {condition:<14} {endpoint.url}  pid {endpoint.pid}  log {endpoint.log}")


def _down(names: Sequence[str], options: argparse.Namespace) -> int:
    if options.purge and names:
        raise StackError("--purge takes no names", todo="name no server, or leave --purge out")
    stopped = servers.stop(names or None, options.data)
    if options.purge:
        servers.purge(options.data)
    print(f"stopped: {', '.join(stopped) or 'nothing ran'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
