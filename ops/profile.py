"""Which mappings, ontology and patterns a data folder was built with, so that later commands need not be told again."""

import json
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pipeline.errors import InvalidConfiguration
from pipeline.settings import Settings

FILE = "profile.json"
REMEMBERED = ("mappings", "ontology", "patterns", "identifiers", "dictionary")


def read_settings(**given: Any) -> Settings:
    """Read the settings; what is None here is left to the environment. Raises InvalidConfiguration."""
    try:
        return Settings(**{name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        wrong = "; ".join(f"SHINSEN_{str(e['loc'][0]).upper()}: {e['msg']}" for e in error.errors() if e["loc"])
        raise InvalidConfiguration(f"wrong settings: {wrong or error}") from error


def remember(settings: Settings) -> None:
    """Write down the configuration files of this start; a start without any changes nothing."""
    paths = {name: str(getattr(settings, name).resolve()) for name in REMEMBERED if getattr(settings, name)}
    if not paths:
        return
    settings.data.mkdir(parents=True, exist_ok=True)
    (settings.data / FILE).write_text(json.dumps(paths, indent=2) + "\n", encoding="utf-8")


def with_remembered(settings: Settings) -> Settings:
    """Fill in what the last start over this folder used, where neither environment nor caller says otherwise."""
    try:
        known = json.loads((settings.data / FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return settings
    missing = {
        name: Path(known[name]) for name in REMEMBERED if name in known and name not in settings.model_fields_set
    }
    return settings.model_copy(update=missing)
