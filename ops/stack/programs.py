"""Our own processes, run like the servers: workers and the API. Their addresses come from `shinsen.env`."""

import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from ops import worker_check
from ops.stack import addresses
from ops.stack.fetch import Fetcher
from ops.stack.http import answers
from ops.stack.ports import HOST
from ops.stack.process import Launch
from ops.stack.server import Server, Site
from schemas.topics import reconcile_group

ROOT = Path(__file__).resolve().parents[2]
API_PORT = 8000
WRONG_CONFIGURATION = 2
"""The exit code with which our programs say that starting them again is no use."""


def data_dir_of(site: Site) -> Path:
    """The data directory that a site of ours lies in."""
    return site.home.parent


def environment(site: Site) -> dict[str, str]:
    """What our programs are told: the addresses, and a folder of their own."""
    # Models run in processes beside each worker; one per core and worker would be too many here.
    few = {} if "SHINSEN_WORKERS" in os.environ else {"SHINSEN_WORKERS": "1"}
    # Its logs are read while it runs.
    return {**addresses.read(data_dir_of(site)), **few, "SHINSEN_DATA": str(site.home), "PYTHONUNBUFFERED": "1"}


class Worker(Server):
    """Reads the topics and writes the stores; any number of them share the work by partitions."""

    kind = "worker"
    port_names = ()
    ready_s = 120.0

    def __init__(self, number: int) -> None:
        self.name = f"{self.kind}-{number}"
        self.number = number

    def fetch(self, fetcher: Fetcher) -> None:
        """Nothing: it is this program."""

    def launch(self, site: Site) -> Launch:
        """One process for all stages and lanes."""
        env = environment(site) | {"SHINSEN_WORKER_NAME": self.name}
        return Launch([sys.executable, "-m", "pipeline.agents", "run"], env=env, cwd=ROOT)

    def healthy(self, site: Site) -> bool:
        """Whether it has joined the first stage's group."""
        settings = addresses.read(data_dir_of(site))
        return worker_check.joined(settings["SHINSEN_KAFKA"], reconcile_group(addresses.TOPIC_PREFIX), self.name)

    def url(self, site: Site) -> str:
        """Workers listen nowhere."""
        return "-"


class Api(Server):
    """`shinsen run --profile stack`: questions, events over HTTP, the console."""

    name = "api"
    port_names = ("http",)
    other_port = "take another port: make stack PORT=8001"
    ready_s = 120.0

    def __init__(self, port: int | None = None) -> None:
        """A port given here is used from this start on; otherwise the one that it had, or 8000."""
        self._port = port

    def fetch(self, fetcher: Fetcher) -> None:
        """Nothing: it is this program."""

    def choose_ports(self, before: Mapping[str, int], taken: Iterable[int]) -> dict[str, int]:
        """People type this one, so it is not a random one."""
        return {"http": self._port or before.get("http", API_PORT)}

    def launch(self, site: Site) -> Launch:
        """On the loopback interface only: nothing asks there who somebody is."""
        argv = [sys.executable, "-m", "ops.cli", "run", "--profile", "stack", "--host", HOST]
        return Launch([*argv, "--port", str(site.ports["http"])], env=environment(site), cwd=ROOT)

    def healthy(self, site: Site) -> bool:
        """Whether it is ready, all stores included."""
        return answers(f"{self.url(site)}/health/ready")

    def url(self, site: Site) -> str:
        """The address of the API and of the console."""
        return f"http://{HOST}:{site.ports['http']}"
