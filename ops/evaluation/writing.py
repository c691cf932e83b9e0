"""Blocks of a report as Markdown and as HTML."""

from collections.abc import Sequence
from html import escape

from ops.evaluation.report import Block, Grid, Heading, Plot, Text

_STYLE = (
    "body{font:15px/1.5 sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem;color:#222}"
    "table{border-collapse:collapse;margin:1rem 0;display:block;overflow-x:auto}"
    "th,td{border:1px solid #ccc;padding:.25rem .6rem;text-align:left;vertical-align:top}"
    "th{background:#f3f3f3}td{font-variant-numeric:tabular-nums}figure{margin:1rem 0;overflow-x:auto}"
    "figcaption{color:#555}"
)


def markdown(blocks: Sequence[Block]) -> str:
    """Write Markdown; plots are left out."""
    return "\n\n".join(_markdown(block) for block in blocks if not isinstance(block, Plot)) + "\n"


def _markdown(block: Block) -> str:
    if isinstance(block, Heading):
        return f"{'#' * block.level} {_plain(block.text)}"
    if isinstance(block, Grid):
        head = [f"| {' | '.join(map(_plain, block.columns))} |", f"|{' --- |' * len(block.columns)}"]
        return "\n".join([*head, *(f"| {' | '.join(map(_plain, row))} |" for row in block.rows)])
    return _plain(block.text) if isinstance(block, Text) else ""


def _plain(text: str) -> str:
    """Keep what came from files from being read as Markdown or HTML."""
    line = " ".join(text.split())
    for mark in ("\\", "|", "<", "`", "*", "_", "["):
        line = line.replace(mark, "\\" + mark)
    return line


def html(blocks: Sequence[Block]) -> str:
    """Write one HTML file: style and pictures in it, no scripts, nothing from elsewhere."""
    title = next((block.text for block in blocks if isinstance(block, Heading)), "Retrieval")
    body = "\n".join(_html(block) for block in blocks)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style></head>\n<body>\n{body}\n</body></html>\n"
    )


def _html(block: Block) -> str:
    if isinstance(block, Heading):
        return f"<h{block.level}>{escape(block.text)}</h{block.level}>"
    if isinstance(block, Text):
        return f"<p>{escape(block.text)}</p>"
    if isinstance(block, Plot):
        return f"<figure>{block.svg}<figcaption>{escape(block.caption)}</figcaption></figure>"
    head = "".join(f"<th>{escape(column)}</th>" for column in block.columns)
    rows = "\n".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in block.rows)
    return f"<table><thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody></table>"
