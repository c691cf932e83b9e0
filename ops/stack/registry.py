"""All servers and programs that the stack knows, and the order in which they start."""

from collections.abc import Iterable, Mapping, Sequence

from ops.stack.connect import Connect
from ops.stack.errors import StackError
from ops.stack.fuseki import Fuseki
from ops.stack.kafka import Kafka
from ops.stack.oxigraph import Oxigraph
from ops.stack.postgres import Postgres
from ops.stack.programs import Api, Worker
from ops.stack.server import Server
from ops.stack.weaviate import Weaviate

# In the order of their start: the slowest first, since they come up side by side.
SERVERS: Mapping[str, Server] = {
    server.name: server for server in (Weaviate(), Kafka(), Postgres(), Fuseki(), Oxigraph(), Connect())
}
DEFAULT = ("weaviate", "kafka", "postgres", "fuseki", "oxigraph")


def named(name: str) -> Server:
    """A server by its name, or one of our own programs (`api`, `worker-1`, `worker-2`, ...)."""
    if name in SERVERS:
        return SERVERS[name]
    if name == Api.name:
        return Api()
    kind, _, number = name.partition("-")
    if kind == Worker.kind and number.isdigit():
        return Worker(int(number))
    raise StackError(f"there is no server {name!r}", todo=f"choose among {', '.join(SERVERS)}")


def plan(names: Iterable[str]) -> list[Server]:
    """The servers and all that they require, in the order of the registry; our own programs last."""
    wanted: dict[str, Server] = {}
    queue = [named(name) for name in names]
    while queue:
        server = queue.pop(0)
        wanted.setdefault(server.name, server)
        queue += [named(name) for name in server.requires if name not in wanted]
    known = [server for name, server in SERVERS.items() if name in wanted]
    return known + [server for name, server in wanted.items() if name not in SERVERS]


def waves(servers: Sequence[Server]) -> list[list[Server]]:
    """What starts side by side: servers that need no other; then those that do, and our own programs."""
    first = [server for server in servers if not _second(server)]
    return [wave for wave in (first, [server for server in servers if _second(server)]) if wave]


def _second(server: Server) -> bool:
    return bool(server.requires) or isinstance(server, Worker | Api)
