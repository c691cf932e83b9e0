"""From a change to an answer that holds it: events through `POST /v1/events`, answers through `POST /v1/search`.

`python -m ops.bench.stack_fresh [--models stub|real] [--rate N] [--events N] [--characters N] [--delay S]`. Workers and
API are processes. At a steady rate, whatever the answers take, a document is changed by a POST; at once a search for a
word that only this version holds asks with the POST's freshness token. The clock runs from the beginning of the POST
to the answer; an answer without the word is an error. `model time`: analysis and embedding of the same texts,
called one after the other as the stages do, in this process, with nothing beside them, before and after; its median
is taken off each figure. Stub models wait `--delay` seconds a call (goal at 10 a second), real models work (at 2).
"""

import argparse
import asyncio
import statistics
import time
from collections.abc import Sequence
from typing import Any

import httpx
import msgspec

from ops.bench.corpus import event
from ops.bench.report import percentile, say, spread
from ops.bench.stack_installation import Installation, installed, parser, real_servers
from ops.bench.stack_outcomes import End, Ends, Spent, following
from pipeline.settings import Settings
from pipeline.wiring import Configuration, open_models

GOAL_S = 0.5
LIMIT_S = 1800.0
DOCUMENTS = {"stub": 200, "real": 32}
"""That are there before, and changed in turn: each has its answer long before it is changed again."""
WARM_UP = 16
RATES = {"stub": 10.0, "real": 2.0}


class Asked(msgspec.Struct):
    """One change, and when what happened; seconds since 1970."""

    key: str
    position: int
    began: float
    accepted: float = 0.0
    answered: float = 0.0
    search: float = 0.0
    """Seconds of the search alone, as its answer says."""

    @property
    def seconds(self) -> float:
        """From the change to the answer."""
        return self.answered - self.began


def changed(number: int, arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the change of that number; its title has a word of its own."""
    made = event(number, arguments.seed, characters=arguments.characters, position=100 + number)
    made["key"] = f"F-{number % DOCUMENTS[arguments.models]}"
    made["record"]["title"] = f"記録 {word(number)}"
    return made


def word(number: int) -> str:
    """Return what only that change holds."""
    return f"ZK-{10_000 + number}"


async def change(client: httpx.AsyncClient, number: int, arguments: argparse.Namespace) -> Asked:
    """Post a change, and search until the answer holds it."""
    made = changed(number, arguments)
    asked = Asked(made["key"], made["position"], time.time())
    posted = await client.post("/v1/events", json=made)
    check(posted)
    asked.accepted = time.time()
    # The second stage is no part of how soon a change is found.
    question = {
        "query": word(number),
        "top_k": 5,
        "rerank": False,
        "min_freshness": posted.json()["token"],
        "wait": "60s",
    }
    answer = await client.post("/v1/search", json=question)
    check(answer)
    asked.answered = time.time()
    asked.search = answer.json()["timings_ms"]["total"] / 1000
    titles = [hit["document"]["title"] for hit in answer.json()["hits"]]
    if f"記録 {word(number)}" not in titles:
        raise RuntimeError(f"{word(number)} was not found after its token was reached: {titles}")
    return asked


def check(response: httpx.Response) -> None:
    """End the run with the server's own words when it refused."""
    if not response.is_success:
        raise RuntimeError(f"{response.request.url.path}: {response.status_code} {response.text[:500]}")


async def steady(client: httpx.AsyncClient, numbers: Sequence[int], arguments: argparse.Namespace) -> list[Asked]:
    """Change documents at the rate; return what happened, in order."""
    loop, tasks = asyncio.get_running_loop(), []
    started = loop.time()
    for place, number in enumerate(numbers):
        await asyncio.sleep(max(0.0, started + place / arguments.rate - loop.time()))
        tasks.append(asyncio.create_task(change(client, number, arguments)))
    return list(await asyncio.gather(*tasks))


async def model_times(settings: Settings, arguments: argparse.Namespace, first: int, count: int) -> list[float]:
    """Return the seconds of the model calls of some changes, one change at a time."""
    times: list[float] = []
    async with open_models(settings, Configuration(settings).lexicon) as (analyzer, embedder):
        for number in range(first, first + count + 1):
            record = changed(number, arguments)["record"]
            body, title = record["body"], record["title"]
            started = time.perf_counter()
            await analyzer.tokens([body, title])
            await analyzer.mentions([body])
            await embedder.passages([f"{title}\n{body}"])
            times.append(time.perf_counter() - started)
    return times[1:]  # the first loads the models


async def measured(one: Installation, ends: Ends, arguments: argparse.Namespace) -> list[Asked]:
    """Start the processes, warm them up, measure."""
    workers = [await one.worker(number + 1) for number in range(arguments.workers)]
    there = DOCUMENTS[arguments.models]
    api, url = await one.api(stub_delay=0)  # a question's own model time is no part of this
    async with httpx.AsyncClient(base_url=url, timeout=90) as client:
        await one.publish(event(n, arguments.seed + 7) | {"key": f"F-{n}"} for n in range(there))
        await ends.until(there, LIMIT_S)
        await steady(client, range(WARM_UP), arguments)
        spent = Spent({"API": [api], "workers": workers}, one)
        done = await steady(client, range(WARM_UP, WARM_UP + arguments.events), arguments)
        say(f"CPU ms a change: {spent.by(len(done))}")
        return done


def stages(done: Sequence[Asked], ends: Ends) -> None:
    """Say where the time went, by the headers of the outcomes."""
    found: dict[str, list[float]] = {}
    by_change = {(end.document.rpartition("/")[2], int(end.position.split(".")[1])): end for end in ends.seen.values()}
    for one in done:
        end: End = by_change[one.key, one.position]
        for name, begin, finish in (
            ("POST begun → in the topic", one.began, end.arrived),
            ("in the topic → record written", end.arrived, end.reconciled),
            ("record → found (analysis, embedding, indexes)", end.reconciled, end.applied),
            ("found → announced", end.applied, end.announced),
            ("announced → answered", end.announced, one.answered),
            ("  of that the search", 0.0, one.search),
        ):
            found.setdefault(name, []).append(finish - begin)
    for name, values in found.items():
        say(f"  {name}: {spread(values)}")


async def main() -> int:
    """Measure the models, the stack, the models."""
    asked = parser(__doc__)
    asked.add_argument("--models", choices=("stub", "real"), default="stub")
    asked.add_argument(
        "--rate", type=float, default=0.0, help="changes a second; 10 with stub models, 2 with real ones"
    )
    asked.add_argument("--events", type=int, default=0, help="as many as a minute brings")
    asked.add_argument("--characters", type=int, default=380)
    asked.add_argument("--delay", type=float, default=0.05)
    asked.add_argument("--workers", type=int, default=1)
    arguments = asked.parse_args()
    arguments.rate = arguments.rate or RATES[arguments.models]
    arguments.events = arguments.events or int(60 * arguments.rate)
    real = arguments.models == "real"
    given: dict[str, Any] = {"analyzer": "ginza", "embedder": "auto"} if real else {"stub_delay": arguments.delay}
    with real_servers(arguments, f"ops.bench.stack_fresh --models {arguments.models}") as (at, folder):
        async with installed(at, arguments, folder, **given) as one, following(one) as ends:
            before = await model_times(one.settings, arguments, 10_000, 10)
            done = await measured(one, ends, arguments)
            after = await model_times(one.settings, arguments, 20_000, 10)
            return report(done, ends, [*before, *after], arguments)


def report(done: Sequence[Asked], ends: Ends, models: Sequence[float], arguments: argparse.Namespace) -> int:
    """Say the figures; return the exit code."""
    seconds = [one.seconds for one in done]
    model = statistics.median(models)
    late = percentile(seconds, 0.95) - model
    say(
        f"{len(done)} changes at {arguments.rate:g} a second, {arguments.workers} worker(s)",
        f"model time of a change alone, seconds: {spread(models)}",
        f"change to answer, seconds: {spread(seconds)}",
    )
    stages(done, ends)
    say(
        f"FIGURE p95 less the median model time: {late * 1000:.0f} ms (goal <= {GOAL_S * 1000:.0f}): "
        f"{'pass' if late <= GOAL_S else 'MISS'}"
    )
    return 0 if late <= GOAL_S else 1


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main()))
