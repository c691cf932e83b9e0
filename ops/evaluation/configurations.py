"""Named configurations that are compared with each other: a YAML or JSON file.

```yaml
baseline: defaults
configurations:
  - name: defaults
  - name: words alone
    search: {alpha: 0.0, rerank: false}          # members of the body of POST /v1/search
  - name: own words
    settings: {dictionary: words.csv}            # SHINSEN_* settings; an index of its own, embedded
  - name: another engine
    engine: package.module:factory               # see ops/evaluation/engines.py
    options: {k1: 0.6}
```
"""

from pathlib import Path
from typing import Any

import msgspec

from ops.profile import read_settings
from pipeline.errors import InvalidConfiguration
from pipeline.mapping.yaml_file import YamlFile, read_yaml
from pipeline.settings import PREFIX, Settings
from schemas.query import SearchRequest

MOST = 100
_OURS = ("query", "top_k", "offset", "filters", "min_freshness", "wait", "explain")
"""Members of a search that the evaluation sets itself, or that would measure something else."""
_NOT_HERE = ("data", "cache", "host", "port", "profile")
"""Settings that `shinsen eval` gives itself."""
DEFAULT_NAME = "defaults"


class Configuration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is measured under one name."""

    name: str
    search: dict[str, Any] = {}
    settings: dict[str, Any] = {}
    engine: str = ""
    """`package.module:factory` of a ranker outside the product."""
    options: dict[str, Any] = {}
    """For the engine."""

    @property
    def own_index(self) -> bool:
        """True when the running profile cannot answer for it."""
        return bool(self.settings)


class Configurations(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file."""

    configurations: list[Configuration]
    baseline: str = ""


ONE = Configurations(configurations=[Configuration(name=DEFAULT_NAME)], baseline=DEFAULT_NAME)
"""Without a file: the product as it runs."""


def read_configurations(path: Path, baseline: str | None = None) -> Configurations:
    """Read and check a file; paths in settings count from its folder; the first one is the baseline unless said.

    Raises InvalidConfiguration with file and line.
    """
    file = read_yaml(path)
    content = file.convert(Configurations)
    if not 1 <= len(content.configurations) <= MOST:
        raise file.refusal(("configurations",), f"1 to {MOST} configurations are wanted")
    seen: set[str] = set()
    checked = []
    for number, configuration in enumerate(content.configurations):
        where = ("configurations", number)
        if not configuration.name.strip() or configuration.name in seen:
            raise file.refusal((*where, "name"), f"the name {configuration.name!r} is empty or given twice")
        seen.add(configuration.name)
        checked.append(_checked(file, where, configuration))
    name = baseline or content.baseline or checked[0].name
    if name not in seen:
        raise file.refusal(("baseline",), f"there is no configuration {name!r}; there are {', '.join(sorted(seen))}")
    return Configurations(configurations=checked, baseline=name)


def _checked(file: YamlFile, where: tuple[str | int, ...], configuration: Configuration) -> Configuration:
    if configuration.engine and (configuration.search or configuration.settings):
        raise file.refusal((*where, "engine"), "an engine takes options, neither search nor settings")
    if configuration.options and not configuration.engine:
        raise file.refusal((*where, "options"), "options are for an engine; the product takes search and settings")
    for member in configuration.search:
        if member in _OURS:
            raise file.refusal((*where, "search", member), "the evaluation sets this member itself")
    try:
        msgspec.convert({"query": "x"} | configuration.search, SearchRequest)
    except msgspec.ValidationError as error:
        raise file.refusal((*where, "search"), str(error)) from error
    settings: dict[str, Any] = {}
    for written, value in configuration.settings.items():
        name = written.removeprefix(PREFIX).lower()
        if name not in Settings.model_fields or name in _NOT_HERE:
            raise file.refusal((*where, "settings", written), "is no setting that a configuration can have")
        is_path = "Path" in str(Settings.model_fields[name].annotation)
        settings[name] = file.path.parent.resolve() / str(value) if is_path and value is not None else value
    try:
        read_settings(**settings)
    except InvalidConfiguration as error:
        raise file.refusal((*where, "settings"), str(error)) from error
    return msgspec.structs.replace(configuration, settings=settings)
