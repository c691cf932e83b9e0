"""Kafka Connect with Debezium's PostgreSQL connector; connectors are made over its REST interface."""

from collections.abc import Mapping

from ops.stack import java
from ops.stack.fetch import Fetcher
from ops.stack.http import answers
from ops.stack.ports import HOST
from ops.stack.process import Launch
from ops.stack.server import Server, Site

# 4.4.0 lacks a class that this Debezium needs.
VERSION = "4.1.1"
DEBEZIUM = "3.6.1.Final"
FOLDER = f"connect-{VERSION}-debezium-{DEBEZIUM}"
ARTIFACTS = (
    f"org.apache.kafka:connect-runtime:{VERSION}",
    f"org.apache.kafka:connect-json:{VERSION}",
    f"io.debezium:debezium-connector-postgres:{DEBEZIUM}",
    "org.slf4j:slf4j-simple:1.7.36",
)


class Connect(Server):
    """A distributed worker of one: connectors and their offsets are kept in Kafka and outlive it."""

    name = "connect"
    port_names = ("http",)
    requires = ("kafka", "postgres")
    ready_s = 120.0

    def fetch(self, fetcher: Fetcher) -> None:
        """The jars."""
        fetcher.maven(FOLDER, ARTIFACTS)

    def prepare(self, site: Site) -> None:
        """Write the worker's properties."""
        java.properties(site.home / "connect.properties", _rows(site))

    def launch(self, site: Site) -> Launch:
        """The worker."""
        main = "org.apache.kafka.connect.cli.ConnectDistributed"
        return Launch(java.command(site.cache / FOLDER, main, str(site.home / "connect.properties")))

    def healthy(self, site: Site) -> bool:
        """Whether it lists its connectors, which it does only once it has joined its group."""
        return answers(f"{self.url(site)}/connectors")

    def url(self, site: Site) -> str:
        """The address of the REST interface."""
        return f"http://{HOST}:{site.ports['http']}"


def _rows(site: Site) -> Mapping[str, str]:
    rows = {
        "bootstrap.servers": f"{HOST}:{site.peers['kafka']['broker']}",
        "group.id": "shinsen-connect",
        "listeners": f"http://{HOST}:{site.ports['http']}",
        "key.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "key.converter.schemas.enable": "false",
        "value.converter.schemas.enable": "false",
        "offset.flush.interval.ms": "1000",
        # By default the tasks of a killed worker wait five minutes for its return.
        "scheduled.rebalance.max.delay.ms": "0",
        "session.timeout.ms": "6000",
        "heartbeat.interval.ms": "2000",
        # Passwords of connectors may stand in files: ${file:/path:key}.
        "config.providers": "file",
        "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
        "offset.storage.partitions": "1",
        "status.storage.partitions": "1",
    }
    for kind in ("config", "offset", "status"):
        rows[f"{kind}.storage.topic"] = f"_connect_{kind}"
        rows[f"{kind}.storage.replication.factor"] = "1"
    return rows
