"""A document's own number and a heading of it, over the demo: `python -m ops.bench.own_numbers FOLDER | URL`.

Asks of each of the demo's documents that all may read its number and each of its headings (`IT-MAN-07 連絡体制`,
`IT-MAN-07の連絡体制`). Tells how often the first hit is of that document, how often it is the passage of that heading,
and how often that is among the first three; then how long the searches took.
"""

import asyncio
import re
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from ops.connection import Connection, connect

_DOCUMENTS = Path(__file__).parents[1] / "demo" / "sources" / "dms" / "documents"
_HEADING = re.compile(r"^(?:## (?:[0-9.]+\s*)?(.+)|第\d+条\((.+?)\).*)$", re.MULTILINE)
_ROUNDS = 3


class Asked(msgspec.Struct, frozen=True):
    """A question, and the passage that it asks for."""

    question: str
    document: str
    heading: str


def questions() -> Iterator[Asked]:
    """Yield the questions."""
    for path in sorted(_DOCUMENTS.glob("*.md")):
        text = path.read_text(encoding="utf-8")
        if "acl: [all-staff]" not in text:
            continue
        for match in _HEADING.finditer(text):
            heading = match.group(1) or match.group(2)
            for between in (" ", "の"):
                yield Asked(f"{path.stem}{between}{heading}", f"dms/documents/{path.stem}", heading)


async def _measure(connection: Connection) -> None:
    asked = list(questions())
    first = right = among = 0
    times: list[float] = []
    for turn in range(_ROUNDS):
        for one in asked:
            began = time.perf_counter()
            response = await connection.post("/v1/search", json={"query": one.question, "top_k": 5})
            times += [(time.perf_counter() - began) * 1000] if turn else []
            if turn == 0:
                places = [hit["document"]["key"] == one.document for hit in response["hits"]]
                answers = [
                    own and one.heading in hit["text"] for own, hit in zip(places, response["hits"], strict=True)
                ]
                first, right, among = first + any(places[:1]), right + any(answers[:1]), among + any(answers[:3])
    number = len(asked)
    print(
        f"{number} questions: of the document first {first / number:.3f}, its passage first {right / number:.3f}, ",
        end="",
    )
    print(f"among the first three {among / number:.3f}")
    print(f"p50 {statistics.median(times):.1f} ms, p95 {statistics.quantiles(times, n=20)[-1]:.1f} ms")


async def main() -> None:
    """Measure a running server or a data folder."""
    where = sys.argv[1]
    url = where if where.startswith("http") else None
    async with connect(url=url, data=None if url else Path(where)) as connection:
        await _measure(connection)


if __name__ == "__main__":
    asyncio.run(main())
