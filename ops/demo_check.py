"""The demo's change script against a running profile: posts each step's events, then holds its checks.

`python -m ops.demo_check [--url URL | --data FOLDER]`, over a profile that holds the demo corpus and nothing else.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import msgspec
import typer
import yaml

from ops.cli.exits import Exit, run_command
from ops.cli.show import print_table
from ops.connection import ApiProblem, Connection, connect
from ops.demo_load import DEMO, manifest
from ops.publisher import EventResult, Publisher

OUTCOME_WAIT_S = 60.0
QUIET_WAIT_S = 120.0
POLL_S = 0.05
MOST = 100


class Checked(msgspec.Struct, frozen=True):
    """One check of one step."""

    step: str
    check: str
    wrong: str
    """Empty when it holds."""


def steps() -> list[dict[str, Any]]:
    """Return the change script's steps."""
    content = yaml.safe_load((DEMO / manifest()["changes"]).read_text(encoding="utf-8"))
    found: list[dict[str, Any]] = content["steps"]
    return found


async def run_steps(connection: Connection) -> AsyncIterator[Checked]:
    """Post and check step after step."""
    for step in steps():
        async for checked in run_step(connection, step):
            yield checked


async def run_step(connection: Connection, step: Mapping[str, Any]) -> AsyncIterator[Checked]:
    """Post one step's events and hold its checks."""
    publisher = Publisher.over(connection)
    results = (await publisher.send(step["events"], outcomes_s=OUTCOME_WAIT_S)).results if step["events"] else []
    token = next((r.token for r in reversed(results) if r.token and r.outcome == "applied"), None)
    await _relinked(connection)
    for check in step["then"]:
        kind = next(name for name in ("outcome", *CHECKS) if name in check)
        wrong = _outcomes(check, results) if kind == "outcome" else await CHECKS[kind](connection, check, token)
        yield Checked(step["id"], f"{kind} {check[kind]}", wrong)


def _outcomes(check: Mapping[str, Any], results: Sequence[EventResult]) -> str:
    # What is refused at the door is kept as a dead letter, too.
    ended = [r.outcome or ("dead_letter" if r.dead_letter else "none in time") for r in results]
    return "" if set(ended) == {check["outcome"]} else f"ended as {', '.join(ended)}"


async def _relinked(connection: Connection) -> None:
    """Wait until other documents are linked anew: tokens do not cover that."""
    for _ in range(round(QUIET_WAIT_S / POLL_S)):
        pending = (await connection.get("/v1/status"))["pending"]
        if not any(pending.values()):
            return
        await asyncio.sleep(POLL_S)


async def check_search(connection: Connection, check: Mapping[str, Any], token: str | None) -> str:
    """Hold `contains` and `lacks` over the documents of the first ten hits."""
    body = {"query": check["search"], "top_k": 10} | ({"min_freshness": token} if token else {})
    hits = (await connection.post("/v1/search", json=body, headers=_groups(check)))["hits"]
    found = list(dict.fromkeys(hit["document"]["key"] for hit in hits))
    return _listed(found, check.get("contains", []), check.get("lacks", []))


async def check_ask(connection: Connection, check: Mapping[str, Any], token: str | None) -> str:
    """Hold `text_contains`, `text_lacks`, `cites` (in the evidence, and one of them by a claim), `lacks`."""
    body = {"question": check["ask"], "top_k": 10} | ({"min_freshness": token} if token else {})
    answer = await connection.post("/v1/query", json=body, headers=_groups(check))
    text, evidence = answer["answer"]["text"], {e["n"]: e["document"]["key"] for e in answer["evidence"]}
    cited = {evidence[n] for claim in answer["answer"]["claims"] for n in claim["citations"]}
    wanted = check.get("cites", [])
    wrong = [f"no {part!r} in {text!r}" for part in check.get("text_contains", []) if part not in text]
    wrong += [f"{part!r} in {text!r}" for part in check.get("text_lacks", []) if part in text]
    if wanted and cited.isdisjoint(wanted):
        wrong.append(f"no claim cites one of {wanted}, only {sorted(cited)}")
    wrong.append(_listed(list(evidence.values()), wanted, check.get("lacks", [])))
    return "; ".join(part for part in wrong if part)


async def check_document(connection: Connection, check: Mapping[str, Any], token: str | None) -> str:
    """Hold the HTTP status and the title."""
    try:
        found = await connection.get(f"/v1/documents/{quote(check['document'])}", headers=_groups(check))
    except ApiProblem as problem:
        return "" if problem.status == check["status"] else f"status {problem.status}"
    if check["status"] != 200:
        return "it is there"
    title = found["document"]["title"]
    return "" if check.get("title", title) == title else f"its title is {title!r}"


async def check_present(connection: Connection, check: Mapping[str, Any], token: str | None) -> str:
    """Hold that an entity has exactly this name."""
    return "" if await _has_name(connection, check["entity_present"]) else "no entity has this name"


async def check_absent(connection: Connection, check: Mapping[str, Any], token: str | None) -> str:
    """Hold that no entity has this name."""
    return "an entity has this name" if await _has_name(connection, check["entity_absent"]) else ""


Check = Callable[[Connection, Mapping[str, Any], str | None], Awaitable[str]]
CHECKS: dict[str, Check] = {
    "search": check_search,
    "ask": check_ask,
    "document": check_document,
    "entity_present": check_present,
    "entity_absent": check_absent,
}


async def _has_name(connection: Connection, name: str) -> bool:
    found = await connection.get("/v1/entities", params={"q": name, "limit": MOST})
    return any(name in (entity["name"], entity["label"]) for entity in found["entities"])


def _listed(found: Sequence[str], wanted: Sequence[str], unwanted: Sequence[str]) -> str:
    missing, surplus = [key for key in wanted if key not in found], [key for key in unwanted if key in found]
    parts = ([f"not found: {missing}"] if missing else []) + ([f"found: {surplus}"] if surplus else [])
    return "; ".join(parts) + (f" (among {list(found)})" if parts else "")


def _groups(check: Mapping[str, Any]) -> dict[str, str]:
    return {"x-shinsen-groups": ",".join(check.get("groups", ["*"]))}


def main(
    url: Annotated[str | None, typer.Option("--url")] = None,
    data: Annotated[Path | None, typer.Option("--data")] = None,
) -> None:
    """Run the change script; exit code 1 when a check does not hold."""

    async def work() -> list[Checked]:
        async with connect(url=url, data=data) as connection:
            return [checked async for checked in run_steps(connection)]

    done = run_command(work())
    print_table(("step", "check", "result"), [(c.step, c.check, c.wrong or "ok") for c in done])
    if any(checked.wrong for checked in done):
        raise typer.Exit(Exit.FAILED)


if __name__ == "__main__":
    typer.run(main)
