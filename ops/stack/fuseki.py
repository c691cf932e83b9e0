"""Apache Jena Fuseki: one TDB2 dataset that can be updated, at /ds."""

from collections.abc import Mapping

from ops.stack import java
from ops.stack.fetch import Fetcher
from ops.stack.http import answers
from ops.stack.ports import HOST
from ops.stack.process import Launch
from ops.stack.server import Server, Site

# Newer ones need a Java newer than Debian 12 has.
VERSION = "5.6.0"
FOLDER = f"fuseki-{VERSION}"
ARTIFACTS = (
    f"org.apache.jena:jena-fuseki-main:{VERSION}",
    "org.apache.logging.log4j:log4j-slf4j2-impl:2.25.5",
    # Without it Fuseki dies with NoClassDefFoundError.
    "org.apache.logging.log4j:log4j-core:2.25.5",
)
MAIN = "org.apache.jena.fuseki.main.cmds.FusekiMainCmd"


class Fuseki(Server):
    """A SPARQL 1.1 server with serialized writers."""

    name = "fuseki"
    port_names = ("http",)

    def fetch(self, fetcher: Fetcher) -> None:
        """The jars."""
        fetcher.maven(FOLDER, ARTIFACTS)

    def prepare(self, site: Site) -> None:
        """Make the folder of the dataset."""
        (site.home / "tdb2").mkdir(exist_ok=True)

    def launch(self, site: Site) -> Launch:
        """The server, on the loopback interface."""
        arguments = [
            "--localhost",
            "--port",
            str(site.ports["http"]),
            "--tdb2",
            f"--loc={site.home / 'tdb2'}",
        ]
        return Launch(java.command(site.cache / FOLDER, MAIN, *arguments, "--update", "/ds"))

    def healthy(self, site: Site) -> bool:
        """Whether it answers a query."""
        return answers(self.urls(site)["query"], body="ASK {}", content_type="application/sparql-query")

    def url(self, site: Site) -> str:
        """The address of the dataset."""
        return f"http://{HOST}:{site.ports['http']}/ds"

    def urls(self, site: Site) -> Mapping[str, str]:
        """The addresses of the SPARQL protocol."""
        base = self.url(site)
        return {"query": f"{base}/query", "update": f"{base}/update", "store": f"{base}/data"}
