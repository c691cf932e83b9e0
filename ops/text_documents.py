"""A Markdown or text file as a record: front matter, title, body, path."""

import re
from pathlib import Path
from typing import Any

import yaml

SUFFIXES = (".md", ".markdown", ".txt")
_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_HEADING = re.compile(r"^#{1,6}[ \t]+(.+?)[ \t]*#*$", re.MULTILINE)
_MAX_FRONT_MATTER = 64 * 1024


class _Loader(yaml.SafeLoader):
    """Dates stay as they are written: the mapping decodes them. Aliases are refused: they can grow without end."""

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases (*name) are not taken here")
        node: yaml.Node | None = super().compose_node(parent, index)
        return node


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def text_files(folder: Path) -> list[Path]:
    """Return the Markdown and text files below a folder, in order of their paths; hidden ones are left out."""
    found = [p for p in folder.rglob("*") if p.suffix.lower() in SUFFIXES and p.is_file()]
    return sorted(p for p in found if not any(part.startswith(".") for part in p.relative_to(folder).parts))


def document_columns(text: str, path: str) -> dict[str, Any]:
    """Return the columns of a document: the front matter's keys, and `title`, `body`, `path`.

    The title is the front matter's, else the first heading, else the file's name. Raises ValueError
    when the front matter is no YAML table.
    """
    front, body = split_front_matter(text)
    heading = _HEADING.search(body)
    title = front.get("title") or (heading.group(1) if heading else "") or path.rpartition("/")[2].rpartition(".")[0]
    return {**front, "title": title, "body": body.strip("\n"), "path": path}


def split_front_matter(text: str) -> tuple[dict[str, Any], str]:
    """Split a text into front matter ({} when there is none) and body. Raises ValueError."""
    match = _FRONT_MATTER.match(text)
    if match is None:
        return {}, text
    if len(match.group(1)) > _MAX_FRONT_MATTER:
        raise ValueError(f"the front matter has more than {_MAX_FRONT_MATTER} characters")
    try:
        front = yaml.load(match.group(1), Loader=_Loader)  # noqa: S506 - a SafeLoader
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise ValueError(f"the front matter is no YAML: {str(error).splitlines()[0]}") from error
    if front is None:
        front = {}
    if not isinstance(front, dict) or not all(isinstance(name, str) for name in front):
        raise ValueError("the front matter must be a table of names and values")
    return front, text[match.end() :]
