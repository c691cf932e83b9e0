"""Refuses SPARQL that is more than a read: updates, SERVICE, LOAD, FROM, and what would break a parser.

Two parsers may disagree, so there are two checks. `check_text` looks at the words outside strings,
IRIs and comments (fast, safe on the event loop). `check_parsed` asks rdflib for the structure (some
ms, up to seconds for hostile text: run it where it can be killed, or in a thread).
"""

import re
from collections.abc import Iterable
from typing import Any

from pipeline.errors import InvalidQuery

MAX_BYTES = 20 * 1024
MAX_NESTING = 32
"""Brackets within brackets. Oxigraph's parser overflows the stack at some thousands, rdflib's far earlier."""

_TOKEN = re.compile(
    r"""
    (?P<string>'''(?:[^'\\]|\\.|'(?!''))*''' | \"\"\"(?:[^"\\]|\\.|"(?!""))*\"\"\"
             | '(?:[^'\\\n\r]|\\.)*' | "(?:[^"\\\n\r]|\\.)*")
  | (?P<iri><[^<>"{}|^`\\\x00-\x20]*>)
  | (?P<comment>\#[^\n\r]*)
  | (?P<variable>[?$]\w+)
  | (?P<language>@[A-Za-z]+(?:-[A-Za-z0-9]+)*)
  | (?P<name>(?P<prefix>[\w.\-]*+):(?:[\w.:\-]|%[0-9A-Fa-f]{2}|\\[_~.\-!$&'()*+,;=/?\#@%])*)
  | (?P<run>[\w.\-]++)
  | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
"""A run that is no prefix is one token: taken apart, each of its characters would look for the colon anew."""
_WORD = re.compile(r"\w+")
_FORBIDDEN = re.compile(r"SERVICE|FROM", re.IGNORECASE)
"""Found anywhere in a word: some parsers read `SERVICEx:y` as the keyword and a name."""
_UPDATE = re.compile(r"(LOAD|INSERT|DELETE|CLEAR|DROP|CREATE|ADD|MOVE|COPY|WITH|USING)", re.IGNORECASE)
_CODE_POINT = re.compile(r"\\u([0-9A-Fa-f]{4})|\\U([0-9A-Fa-f]{8})")
_SERVICE, _DATASET = "ServiceGraphPattern", "DatasetClause"


def check_query(sparql: str) -> None:
    """Make both checks. Raises InvalidQuery saying what is not allowed."""
    check_text(sparql)
    check_parsed(sparql)


def check_text(sparql: str) -> None:
    """Check size, nesting and words. Raises InvalidQuery."""
    if len(sparql.encode("utf-8", "replace")) > MAX_BYTES:
        raise InvalidQuery(f"the query is longer than {MAX_BYTES} bytes; ask for less at a time")
    for escape in _CODE_POINT.finditer(sparql):
        if int(escape.group(1) or escape.group(2), 16) < 0x80:  # could spell a keyword or end a string
            raise InvalidQuery(f"write {escape.group()} as the character itself")
    depth = 0
    for token in _TOKEN.finditer(sparql):
        depth = _nesting(token, depth)
        _check_word(token)


def _nesting(token: re.Match[str], depth: int) -> int:
    """Return how deep the brackets are after this token. Raises InvalidQuery for what cannot be SPARQL."""
    other = token.group("other")
    if other and other in "'\"":  # a second one may look as far for its end, and so on: stop at the first
        raise InvalidQuery(f"the string that opens at character {token.start()} does not end")
    if other and other in "({[":
        depth += 1
    elif other and other in ")}]":
        depth -= 1
    if depth > MAX_NESTING:
        raise InvalidQuery(f"brackets are nested more than {MAX_NESTING} deep")
    if depth < 0:
        raise InvalidQuery(f"a bracket closes at character {token.start()} that was never opened")
    return depth


def _check_word(token: re.Match[str]) -> None:
    run = token.group("run") or ""
    found = _FORBIDDEN.search(run or token.group("prefix") or "") or _first_update(run)
    if found:
        raise InvalidQuery(
            f"{found.group().upper()} at character {token.start() + found.start()} is not allowed: queries only read "
            "(SELECT, ASK, CONSTRUCT, DESCRIBE) and only this graph; rename a prefix that holds the word"
        )


def _first_update(run: str) -> re.Match[str] | None:
    """Return the first whole word of an update, such as LOAD in `1.LOAD`."""
    return next((word for word in _WORD.finditer(run) if _UPDATE.fullmatch(word.group())), None)


def check_parsed(sparql: str) -> None:
    """Check the structure. Raises InvalidQuery for a syntax error, SERVICE and FROM."""
    from pyparsing import ParseException
    from rdflib.plugins.sparql.parser import parseQuery

    try:
        parsed = parseQuery(sparql)
    except ParseException as error:
        raise InvalidQuery(f"syntax error in line {error.lineno}, column {error.column}: {error.msg}") from None
    except RecursionError:
        raise InvalidQuery("the query is too long or too deeply nested; split it") from None
    names = set(_node_names(parsed))
    if names & {_SERVICE, _DATASET}:
        raise InvalidQuery("SERVICE and FROM are not allowed: queries read this graph only")


def _node_names(parsed: Iterable[Any]) -> Iterable[str]:
    """Yield the names of all nodes of rdflib's parse tree, without recursion."""
    stack: list[Any] = [parsed]
    while stack:
        node = stack.pop()
        name = getattr(node, "name", None)
        if isinstance(name, str):
            yield name
        if isinstance(node, dict):
            stack.extend(node.values())
        elif not isinstance(node, str) and isinstance(node, Iterable):
            stack.extend(node)
