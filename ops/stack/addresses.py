"""`shinsen.env`: where the stack of a data directory is, as settings for our own programs and for a shell."""

import shlex
from collections.abc import Mapping
from pathlib import Path

from ops.stack.errors import StackError
from ops.stack.server import Endpoint

FILE = "shinsen.env"
TOPIC_PREFIX = "shinsen."
SPARQL = ("fuseki", "oxigraph")


def addresses(servers: Mapping[str, Endpoint], sparql: str) -> dict[str, str]:
    """The settings that name the servers; `sparql` says which of the SPARQL servers is used."""
    weaviate = servers["weaviate"]
    return {
        "SHINSEN_PROFILE": "stack",
        "SHINSEN_KAFKA": servers["kafka"].url,
        "SHINSEN_POSTGRES": servers["postgres"].url,
        "SHINSEN_WEAVIATE": weaviate.url,
        "SHINSEN_WEAVIATE_GRPC": f"{weaviate.host}:{weaviate.ports['grpc']}",
        "SHINSEN_SPARQL": servers[sparql].url,
        # Servers of our own are shared with nobody.
        "SHINSEN_TOPIC_PREFIX": TOPIC_PREFIX,
        "SHINSEN_SPACE": "",
    }


def write(data_dir: Path, settings: Mapping[str, str]) -> Path:
    """Write the file; `. FILE` in a shell exports what is in it."""
    path = data_dir / FILE
    part = path.with_suffix(".part")
    part.write_text("".join(f"export {name}={shlex.quote(value)}\n" for name, value in settings.items()))
    part.replace(path)
    return path


def read(data_dir: Path) -> dict[str, str]:
    """What the last start wrote."""
    path = data_dir / FILE
    try:
        words = shlex.split(path.read_text())
    except OSError as error:
        raise StackError(f"there is no {path}", todo="start the whole stack once: make stack") from error
    return dict(word.split("=", 1) for word in words if "=" in word)
