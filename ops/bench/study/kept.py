"""Rankings of engines outside the product, kept in a folder: they do not change while the product does."""

from collections.abc import Awaitable, Callable, Sequence
from hashlib import sha256
from pathlib import Path

import msgspec

from ops.evaluation.configurations import Configuration
from ops.evaluation.golden import GoldenSet
from ops.evaluation.running import Run

Ask = Callable[[Sequence[Configuration]], Awaitable[list[Run]]]


async def runs(golden: GoldenSet, configurations: Sequence[Configuration], ask: Ask, folder: Path | None) -> list[Run]:
    """Ask what is not in the folder, and return all in the order of the configurations.

    Engines are asked one by one and kept at once, so that an interrupted run goes on where it was. The product is
    always asked. Who changes an engine deletes its file: the name stands for questions, passages and options only.
    """
    done: dict[str, Run] = {}
    for each in configurations:
        file = folder / f"{_name(golden, each)}.json" if folder and each.engine else None
        if file is None:
            continue
        if file.exists():
            done[each.name] = msgspec.json.decode(file.read_bytes(), type=Run)
            continue
        (done[each.name],) = await ask([each])
        file.parent.mkdir(parents=True, exist_ok=True)
        part = file.with_suffix(".part")
        part.write_bytes(msgspec.json.encode(done[each.name]))
        part.replace(file)
    if left := [each for each in configurations if each.name not in done]:
        done |= {run.configuration.name: run for run in await ask(left)}
    return [done[each.name] for each in configurations]


def _name(golden: GoldenSet, configuration: Configuration) -> str:
    told = msgspec.json.encode((golden.questions, golden.passages, configuration), order="deterministic")
    return sha256(told).hexdigest()[:24]
