"""All mappings of one start of the pipeline."""

import hashlib
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

import msgspec
import yaml

import schemas
from schemas.mapping import Mapping

CODE_VERSION = "1"
"""Raise it when the same mapping would make another document of the same record."""
DEFAULT_FILE = Path(schemas.__file__).parent / "mappings" / "default.yaml"


class Mappings:
    """The mapping of every collection, immutable; a collection without a file has the default one."""

    def __init__(self, loaded: Iterable[Mapping] = ()) -> None:
        """Take mappings, one per collection."""
        self._loaded = {(m.source, m.collection): m for m in loaded}

    def of(self, source: str, collection: str) -> Mapping:
        """Return the collection's mapping, or the default one under the collection's name."""
        return self._loaded.get((source, collection)) or default_mapping(source, collection)

    def version(self, source: str, collection: str) -> str:
        """Return 16 hex digits that change when the same records would become other documents."""
        mapping = msgspec.structs.replace(self.of(source, collection), file="", extra={})
        content = msgspec.json.encode([CODE_VERSION, mapping], order="deterministic")
        return hashlib.sha256(content).hexdigest()[:16]

    @property
    def fingerprint(self) -> str:
        """Return 16 hex digits over the versions of all mappings and of the default one."""
        names = [*sorted(self._loaded), ("", "")]
        return hashlib.sha256(msgspec.json.encode([(*n, self.version(*n)) for n in names])).hexdigest()[:16]

    def all(self) -> tuple[Mapping, ...]:
        """Return the mappings that have files, ordered by source and collection."""
        return tuple(self._loaded[key] for key in sorted(self._loaded))


@lru_cache(maxsize=1024)
def default_mapping(source: str, collection: str) -> Mapping:
    """Return the mapping of a collection that has no file: schemas/mappings/default.yaml."""
    return msgspec.structs.replace(_default(), source=source, collection=collection)


@lru_cache(maxsize=1)
def _default() -> Mapping:
    return msgspec.convert(yaml.safe_load(DEFAULT_FILE.read_text("utf-8")), Mapping)
