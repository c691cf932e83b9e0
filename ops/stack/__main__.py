"""Command line: `python -m ops.stack run|demo|fetch|up|status|down|kafka ...`."""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from ops.stack import addresses, demo, kafka_tools, servers, whole
from ops.stack.errors import StackError
from ops.stack.fetch import CACHE_VARIABLE, default_cache
from ops.stack.holder import end_holder
from ops.stack.programs import API_PORT
from ops.stack.registry import DEFAULT, SERVERS
from ops.stack.server import Endpoint

DEFAULT_DATA = Path(__file__).resolve().parents[2] / ".stack"
TEXTS = {
    "run": "the whole stack: servers, topics, workers, the API; until Ctrl-C",
    "demo": "publish the demo corpus into the stack that runs, and ask its question",
    "fetch": "fetch programs into the cache",
    "up": "fetch what is missing, start, and wait until healthy",
    "status": "show what runs; exit status 1 when something is not healthy",
    "down": "stop; data and ports stay",
    "kafka": "run one of Kafka's own tools against the Kafka that runs",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit status is 0, or 1 with a message on standard error."""
    options = _parser().parse_args(arguments)
    try:
        return _command(options)
    except StackError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted; what this command had started is stopped again", file=sys.stderr)
        return 130


def _command(options: argparse.Namespace) -> int:
    if options.command == "run":
        return whole.run(_wanted(options))
    if options.command == "demo":
        return demo.load(options.data)
    if options.command == "kafka":
        cache = options.cache.resolve()
        return kafka_tools.run_tool(options.tool, options.arguments, options.data, cache, install=options.install)
    names = tuple(options.names)
    if options.command == "fetch":
        return _fetch(names or DEFAULT, options)
    if options.command == "up":
        return _up(names or DEFAULT, options)
    if options.command == "status":
        return _status(names, options.data)
    return _down(names, options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m ops.stack", description="The real servers without Docker.")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, text in TEXTS.items():
        command = commands.add_parser(name, help=text, description=text)
        if name == "kafka":
            command.add_argument("tool", choices=kafka_tools.TOOLS)
            command.add_argument("arguments", nargs=argparse.REMAINDER, help="what the tool is told")
        elif name not in {"run", "demo"}:
            names = f"{', '.join(SERVERS)} (default: all but connect); worker-N and api once `run` has made topics"
            command.add_argument("names", nargs="*", metavar="NAME", help=names)
        if name != "fetch":
            command.add_argument("--data", type=Path, default=DEFAULT_DATA, help="data directory (%(default)s)")
        if name in {"run", "fetch", "up", "kafka"}:
            cache_help = f"where programs are kept (${CACHE_VARIABLE}, now %(default)s)"
            command.add_argument("--cache", type=Path, default=default_cache(), help=cache_help)
            # None leaves the choice to the API: yes in CI, no elsewhere.
            install = "let apt-get install missing packages (always when CI=true)"
            command.add_argument("--install", action="store_true", default=None, help=install)
        if name == "run":
            _add_run_options(command)
        if name == "down":
            command.add_argument("--purge", action="store_true", help="stop everything and delete all data")
    return parser


def _add_run_options(command: argparse.ArgumentParser) -> None:
    kinds = addresses.SPARQL
    command.add_argument("--sparql", choices=kinds, default=kinds[0], help="which SPARQL server (%(default)s)")
    command.add_argument("--workers", type=_positive, default=2, help="number of workers (%(default)s)")
    command.add_argument("--port", type=int, default=API_PORT, help="where the API listens (%(default)s)")
    command.add_argument("--no-connect", action="store_true", help="without Kafka Connect and Debezium")


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return number


def _wanted(options: argparse.Namespace) -> whole.Wanted:
    return whole.Wanted(
        data_dir=options.data,
        cache=options.cache.resolve(),
        sparql=options.sparql,
        workers=options.workers,
        port=options.port,
        connect=not options.no_connect,
        install=options.install,
    )


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
    if not names and end_holder(options.data.resolve()):
        print("the process that ran the stack has ended")
    stopped = servers.stop(names or None, options.data)
    if options.purge:
        servers.purge(options.data)
    print(f"stopped: {', '.join(stopped) or 'nothing else ran'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
