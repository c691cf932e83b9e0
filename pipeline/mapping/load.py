"""Mapping files: YAML to mappings, refused with file, line and reason when they are wrong."""

from collections.abc import Iterable
from pathlib import Path

import msgspec

from pipeline.errors import InvalidConfiguration
from pipeline.mapping.check import problems
from pipeline.mapping.mappings import Mappings
from pipeline.mapping.yaml_file import read_yaml
from schemas.mapping import Mapping


def load_mappings(paths: Iterable[Path | str]) -> Mappings:
    """Load files, and the *.yaml and *.yml of folders.

    Raises InvalidConfiguration (text: `file:line: reason`) for a file that is missing, unreadable, of
    another shape than schemas/mapping.py, or wrong in itself, and for two files of one collection.
    """
    loaded: dict[tuple[str, str], Mapping] = {}
    for path in _files(paths):
        mapping = load_mapping(path)
        name = (mapping.source, mapping.collection)
        if name in loaded:
            raise InvalidConfiguration(
                f"{path}: maps {'/'.join(name)}, which {loaded[name].file} maps already; keep one of the two"
            )
        loaded[name] = mapping
    return Mappings(loaded.values())


def load_mapping(path: Path) -> Mapping:
    """Load and check one file. Raises InvalidConfiguration."""
    file = read_yaml(path)
    mapping = file.convert(Mapping)
    if mapping.file:
        raise file.refusal(("file",), "is set by the loader; leave it out")
    for where, reason in problems(mapping):
        raise file.refusal(where, reason)
    return msgspec.structs.replace(mapping, file=str(path))


def _files(paths: Iterable[Path | str]) -> list[Path]:
    found: list[Path] = []
    for path in map(Path, paths):
        if path.is_dir():
            found += sorted(p for p in path.iterdir() if p.suffix in (".yaml", ".yml") and p.is_file())
        elif path.is_file():
            found.append(path)
        else:
            raise InvalidConfiguration(f"{path}: there is no such mapping file or folder")
    return found
