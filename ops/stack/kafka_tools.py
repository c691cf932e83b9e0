"""Kafka's own command line tools over the stack, by the names of their scripts."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

from ops.stack import java, servers
from ops.stack.fetch import Fetcher
from ops.stack.kafka import VERSION

FOLDER = f"kafka-tools-{VERSION}"
ARTIFACTS = (f"org.apache.kafka:kafka-tools:{VERSION}", "org.slf4j:slf4j-simple:1.7.36")
TOOLS = {
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
    "kafka-configs": "org.apache.kafka.tools.ConfigCommand",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
}
QUIET = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"


def run_tool(name: str, arguments: Sequence[str], data_dir: Path, cache: Path, *, install: bool | None = None) -> int:
    """Run a tool against the Kafka that runs there, fetched at its first use; its exit status."""
    bootstrap = servers.endpoint("kafka", data_dir).url
    command = tool_command(name, arguments, bootstrap, cache, install=bool(install))
    return subprocess.run(command, check=False).returncode


def tool_command(name: str, arguments: Sequence[str], bootstrap: str, cache: Path, *, install: bool) -> list[str]:
    """Return the command of a tool against the Kafka at an address, fetched at its first use."""
    Fetcher(cache, install=install).maven(FOLDER, ARTIFACTS)
    return java.command(
        cache / FOLDER, TOOLS[name], "--bootstrap-server", bootstrap, *arguments, heap="256m", options=(QUIET,)
    )
