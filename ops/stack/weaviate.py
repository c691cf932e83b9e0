"""Weaviate: one node without vectorizer modules."""

from ops.stack.fetch import Fetcher
from ops.stack.http import answers
from ops.stack.ports import HOST
from ops.stack.process import Launch
from ops.stack.server import Server, Site

VERSION = "1.35.2"
FOLDER = f"weaviate-{VERSION}"
PACKAGE = f"github.com/weaviate/weaviate/cmd/weaviate-server@v{VERSION}"
NODE = "n1"


class Weaviate(Server):
    """Anonymous, loopback only, schemas never made up from data."""

    name = "weaviate"
    # In this order: a node on localhost looks for its raft RPC at the raft port plus one.
    port_names = ("http", "grpc", "gossip", "cluster", "raft", "raft_rpc")
    ready_s = 120.0

    def fetch(self, fetcher: Fetcher) -> None:
        """The server, built from its Go module."""
        fetcher.go(FOLDER, PACKAGE)

    def launch(self, site: Site) -> Launch:
        """The server."""
        binary = str(site.cache / FOLDER / "weaviate-server")
        argv = [binary, "--host", HOST, "--port", str(site.ports["http"]), "--scheme", "http"]
        return Launch(argv, env=_environment(site))

    def healthy(self, site: Site) -> bool:
        """Whether it calls itself ready."""
        return answers(f"{self.url(site)}/v1/.well-known/ready")

    def url(self, site: Site) -> str:
        """The HTTP address."""
        return f"http://{HOST}:{site.ports['http']}"


def _environment(site: Site) -> dict[str, str]:
    ports = {name: str(port) for name, port in site.ports.items()}
    return {
        "PERSISTENCE_DATA_PATH": str(site.home / "data"),
        "AUTHENTICATION_ANONYMOUS_ACCESS_ENABLED": "true",
        "AUTOSCHEMA_ENABLED": "false",
        "DEFAULT_VECTORIZER_MODULE": "none",
        "DISABLE_TELEMETRY": "true",
        # BM25 adds up the lengths of all that is not flushed, at every query: 0.3 s of work after 2,000 new chunks with
        # the default of a minute, 0.03 s with this.
        "PERSISTENCE_MEMTABLES_FLUSH_DIRTY_AFTER_SECONDS": "2",
        # Its profiler would listen on one fixed port, for all stacks of the machine.
        "GO_PROFILING_DISABLE": "true",
        "GRPC_PORT": ports["grpc"],
        # Without the addresses it dies where the machine has only IPv6.
        "CLUSTER_HOSTNAME": NODE,
        "CLUSTER_ADVERTISE_ADDR": HOST,
        "CLUSTER_BIND_ADDR": HOST,
        "CLUSTER_IN_LOCALHOST": "true",
        "CLUSTER_GOSSIP_BIND_PORT": ports["gossip"],
        "CLUSTER_DATA_BIND_PORT": ports["cluster"],
        "RAFT_JOIN": NODE,
        "RAFT_BOOTSTRAP_EXPECT": "1",
        "RAFT_PORT": ports["raft"],
        "RAFT_INTERNAL_RPC_PORT": ports["raft_rpc"],
    }
