"""kill -9 and SIGTERM at seeded moments of a real process: nothing accepted is lost, nothing happens twice.

SHINSEN_FAULTS sets how many kills (default 30), SHINSEN_SEED the seed.
"""

import asyncio
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.differential.running import assert_counts, running, scratch
from tests.faults.stream import stream

FAULTS = int(os.environ.get("SHINSEN_FAULTS", "30"))
SEED = int(os.environ.get("SHINSEN_SEED", "20250708"))
PER_LIFE = 14
"""Events of the stream for each kill: about what one life submits."""
ROOT = Path(__file__).parents[2]

pytestmark = [pytest.mark.faults, pytest.mark.timeout(120 + 12 * FAULTS)]


class Life:
    """One run of the driver, until it is killed or done."""

    def __init__(self, folder: Path, start: int, length: int, replay: bool) -> None:
        arguments = [str(folder), str(SEED), str(length), str(start), "1" if replay else "0"]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.driver", *arguments],
            cwd=ROOT, stdout=subprocess.PIPE, stderr=(folder / "driver.log").open("ab"), text=True,
        )  # fmt: skip
        self.acknowledged, self.events, self.quiet = start, list[str](), False
        self.ready = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            word, *rest = line.split()
            if not line.endswith("\n"):
                break  # cut off by the kill
            if word == "ready":
                self.ready.set()
            elif word == "ack":
                self.acknowledged = int(rest[0])
                self.events += rest[1:]
            self.quiet = self.quiet or word == "quiet"

    def end(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        return self.wait()

    def wait(self, timeout: float = 120) -> int:
        code = self.process.wait(timeout)
        self._reader.join(10)
        return code


def moment(chance: random.Random, life: Life) -> None:
    """Wait for a seeded moment: while it starts, recovers, or works."""
    if chance.random() < 0.2:
        time.sleep(chance.uniform(0, 1.5))
        return
    life.ready.wait(60)
    time.sleep(chance.uniform(0, 0.5) if chance.random() < 0.8 else chance.uniform(0, 0.03))


def test_killed_at_any_moment_ends_with_the_digest_of_a_clean_run() -> None:
    length = FAULTS * PER_LIFE
    ordered, arriving = stream(SEED, length)
    with scratch() as folder, scratch() as clean:
        accepted, kills, terms = killed_again_and_again(folder, length, len(arriving))
        assert len(accepted) == len(set(accepted))
        print(f"faults: {kills} SIGKILL and {terms} SIGTERM injected and survived, {len(accepted)} events accepted")
        asyncio.run(compare(folder, clean, ordered, arriving, accepted))


def killed_again_and_again(folder: Path, length: int, events: int) -> tuple[list[str], int, int]:
    chance = random.Random(SEED)
    accepted: list[str] = []
    start = kills = terms = 0
    while kills + terms < FAULTS:
        life = Life(folder, start, length, replay=chance.random() < 0.25)
        moment(chance, life)
        number = signal.SIGTERM if chance.random() < 0.2 else signal.SIGKILL
        if life.process.poll() is None:
            kills, terms = kills + (number is signal.SIGKILL), terms + (number is signal.SIGTERM)
        code = life.end(number)
        # SIGTERM before the handler is there ends it like any process.
        assert code in (0, -signal.SIGKILL, -signal.SIGTERM), (folder / "driver.log").read_text()[-4000:]
        start = life.acknowledged
        accepted += life.events
    life = Life(folder, start, length, replay=False)
    assert life.wait() == 0, (folder / "driver.log").read_text()[-4000:]
    assert life.quiet
    assert life.acknowledged == events
    return accepted + life.events, kills, terms


async def compare(folder: Path, clean: Path, ordered: list, arriving: list, accepted: list[str]) -> None:  # type: ignore[type-arg]
    async with running(clean) as runtime:
        await runtime.submit(ordered)
        expected = await runtime.digest()
    async with running(folder) as runtime:
        found = await runtime.digest()
        await assert_counts(runtime, arriving)
        outcomes = await runtime.state.outcomes(accepted)
    assert set(outcomes) == set(accepted)
    assert {part for part in expected if found[part] != expected[part]} == set()
