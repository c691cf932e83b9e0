"""What a server of the stack is: the base class that each server's file fills in."""

import signal
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ops.stack import ports
from ops.stack.fetch import Fetcher
from ops.stack.ports import HOST
from ops.stack.process import Launch


@dataclass(frozen=True)
class Site:
    """Where one server of one data directory lives."""

    home: Path
    cache: Path
    log: Path
    ports: Mapping[str, int]
    # Ports of the servers that this one requires, by their names.
    peers: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Endpoint:
    """How a client reaches a running server."""

    name: str
    url: str
    ports: Mapping[str, int]
    pid: int
    home: Path
    log: Path
    # Further addresses, such as a SPARQL server's `query` and `update`.
    urls: Mapping[str, str] = field(default_factory=dict)
    host: str = HOST

    @property
    def port(self) -> int:
        """The main port."""
        return next(iter(self.ports.values()))


class Server(ABC):
    """One kind of server. Instances have no state: all of it is in the `Site`."""

    name: str
    # The first one is the main port; the numbers follow each other without a gap.
    port_names: tuple[str, ...]
    # What to do when a port is taken and its holder shall stay.
    other_port: str = "use another --data directory"
    requires: tuple[str, ...] = ()
    stop_signal: signal.Signals = signal.SIGTERM
    ready_s: float = 60.0
    stop_s: float = 30.0

    @abstractmethod
    def fetch(self, fetcher: Fetcher) -> None:
        """Bring what is missing onto this machine; does nothing when all is there."""

    @abstractmethod
    def launch(self, site: Site) -> Launch:
        """What to run."""

    @abstractmethod
    def healthy(self, site: Site) -> bool:
        """Whether the server answers a real request now; takes a few seconds at most."""

    @abstractmethod
    def url(self, site: Site) -> str:
        """The address to give to a client."""

    def urls(self, site: Site) -> Mapping[str, str]:
        """Further addresses."""
        return {}

    def choose_home(self, data_dir: Path) -> Path:
        """Where the server's data go; asked once for each data directory."""
        return data_dir / self.name

    def choose_ports(self, before: Mapping[str, int], taken: Iterable[int]) -> dict[str, int]:
        """Which ports to use: those of `before` (empty at the first start), else free ones that are not in `taken`."""
        return dict(before) or ports.choose(self.port_names, taken)

    def prepare(self, site: Site) -> None:  # noqa: B027 - most servers need nothing
        """Make the data ready for a start: format what was never formatted."""
