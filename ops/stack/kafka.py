"""Apache Kafka: one KRaft node that is broker and controller."""

import base64
import os
import socket
import struct
import uuid

from ops.stack import java
from ops.stack.fetch import Fetcher
from ops.stack.ports import HOST
from ops.stack.process import Launch
from ops.stack.server import Server, Site
from ops.stack.tools import run_logged

VERSION = "4.4.0"
FOLDER = f"kafka-{VERSION}"
ARTIFACTS = (f"org.apache.kafka:kafka_2.13:{VERSION}", "org.slf4j:slf4j-simple:1.7.36")
FORMAT_TIMEOUT_S = 120
METADATA_KEY, METADATA_VERSION = 3, 7


class Kafka(Server):
    """Topics are never created by a mere mention."""

    name = "kafka"
    port_names = ("broker", "controller")
    ready_s = 90.0

    def fetch(self, fetcher: Fetcher) -> None:
        """The jars."""
        fetcher.maven(FOLDER, ARTIFACTS)

    def prepare(self, site: Site) -> None:
        """Write the properties, and format the log folder once."""
        config = site.home / "server.properties"
        java.properties(config, _rows(site))
        if (site.home / "logs" / "meta.properties").exists():
            return
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        run_logged(
            # The tool takes a leading dash for an option.
            _command(site, "kafka.tools.StorageTool", "format", f"--cluster-id=A{cluster[1:]}", "-c", str(config)),
            log=site.log,
            timeout=FORMAT_TIMEOUT_S,
            todo="delete the data directory and start again",
        )

    def launch(self, site: Site) -> Launch:
        """The server."""
        return Launch(_command(site, "kafka.Kafka", str(site.home / "server.properties")))

    def healthy(self, site: Site) -> bool:
        """Whether the broker knows itself and a controller, so that topics can be created."""
        try:
            brokers, controller = _metadata(site.ports["broker"])
        except (OSError, struct.error):
            return False
        return brokers > 0 and controller >= 0

    def url(self, site: Site) -> str:
        """The bootstrap server."""
        return f"{HOST}:{site.ports['broker']}"


def _command(site: Site, main: str, *arguments: str) -> list[str]:
    return java.command(site.cache / FOLDER, main, *arguments)


def _rows(site: Site) -> dict[str, str]:
    broker, controller = (f"{HOST}:{site.ports[name]}" for name in ("broker", "controller"))
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@{controller}",
        "listeners": f"PLAINTEXT://{broker},CONTROLLER://{controller}",
        "advertised.listeners": f"PLAINTEXT://{broker}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": str(site.home / "logs"),
        "auto.create.topics.enable": "false",
        "offsets.topic.replication.factor": "1",
        # Fifty partitions by default: each costs files and start time, and one machine needs few.
        "offsets.topic.num.partitions": "4",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.num.partitions": "4",
        "group.initial.rebalance.delay.ms": "0",
    }


def _metadata(port: int) -> tuple[int, int]:
    """Number of brokers and id of the controller, from a metadata request that names no topic."""
    client = b"shinsen-stack"
    head = struct.pack(">hhih", METADATA_KEY, METADATA_VERSION, 1, len(client)) + client
    body = struct.pack(">i?", 0, False)
    with socket.create_connection((HOST, port), timeout=3) as link:
        link.sendall(struct.pack(">i", len(head) + len(body)) + head + body)
        (size,) = struct.unpack(">i", _exactly(link, 4))
        answer = _exactly(link, size)
    _, _, brokers = struct.unpack_from(">iii", answer)
    at = 12
    for _ in range(brokers):
        at = _skip_text(answer, at + 4)
        at = _skip_text(answer, at + 4)
    at = _skip_text(answer, at)
    return brokers, struct.unpack_from(">i", answer, at)[0]


def _skip_text(answer: bytes, at: int) -> int:
    (length,) = struct.unpack_from(">h", answer, at)
    return at + 2 + max(0, int(length))


def _exactly(link: socket.socket, size: int) -> bytes:
    parts = b""
    while len(parts) < size:
        more = link.recv(size - len(parts))
        if not more:
            raise ConnectionResetError(os.strerror(104))
        parts += more
    return parts
