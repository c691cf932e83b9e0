"""Oxigraph's server, from the wheel on PyPI."""

import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from ops.stack.errors import StackError
from ops.stack.fetch import Fetcher
from ops.stack.http import answers
from ops.stack.ports import HOST
from ops.stack.process import Launch
from ops.stack.server import Server, Site

VERSION = "0.5.13"
FOLDER = f"oxigraph-{VERSION}"
# Of queries only: one whose client went away would run on for ever.
QUERY_TIMEOUT_S = 10


class Oxigraph(Server):
    """A SPARQL 1.1 server that does not serialize writers."""

    name = "oxigraph"
    port_names = ("http",)
    ready_s = 30.0

    def fetch(self, fetcher: Fetcher) -> None:
        """The wheel, unless this Python's environment has the program."""
        if _binary(fetcher.cache) is None:
            fetcher.pip(FOLDER, f"oxigraph=={VERSION}")

    def launch(self, site: Site) -> Launch:
        """The server."""
        binary = _binary(site.cache)
        if binary is None:
            raise StackError("oxigraph is not installed", todo="run `python -m ops.stack fetch oxigraph`")
        location = str(site.home / "store")
        address = f"{HOST}:{site.ports['http']}"
        timeout = str(QUERY_TIMEOUT_S)
        return Launch([binary, "serve", "--location", location, "--bind", address, "--timeout-s", timeout])

    def healthy(self, site: Site) -> bool:
        """Whether it answers a query."""
        return answers(self.urls(site)["query"], body="ASK {}", content_type="application/sparql-query")

    def url(self, site: Site) -> str:
        """The address of the server."""
        return f"http://{HOST}:{site.ports['http']}"

    def urls(self, site: Site) -> Mapping[str, str]:
        """The addresses of the SPARQL protocol."""
        base = self.url(site)
        return {"query": f"{base}/query", "update": f"{base}/update", "store": f"{base}/store"}


def _binary(cache: Path) -> str | None:
    # Unresolved: in a virtual environment the link is what lies beside the programs.
    beside = Path(sys.executable).parent / "oxigraph"
    cached = cache / FOLDER / "bin" / "oxigraph"
    for path in (beside, cached):
        if path.exists():
            return str(path)
    return shutil.which("oxigraph")
