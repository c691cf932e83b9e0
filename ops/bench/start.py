"""A first and a second start of the demo: `python -m ops.bench.start`. The virtual environment is there already."""

import subprocess
import sys
import tempfile
import time

from ops.bench.report import machine, say


def start(folder: str) -> float:
    """Return the seconds from the command to its end, just behind the printed answer."""
    command = [sys.executable, "-m", "ops.cli", "run", "--demo", "--exit", "--port", "0", "--data", folder]
    started = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode or "Freshness" not in done.stdout:
        raise RuntimeError(f"the demo did not answer: {done.stdout[-500:]} {done.stderr[-500:]}")
    return time.perf_counter() - started


def main() -> None:
    """Start twice over one folder."""
    say("ops.bench.start", machine())
    with tempfile.TemporaryDirectory() as folder:
        say(f"first start, to the printed answer: {start(folder):.1f} s")
        seconds = [start(folder) for _ in range(3)]
        say(f"second start, to the printed answer, three times: {', '.join(f'{s:.1f}' for s in seconds)} s (goal < 8)")


if __name__ == "__main__":
    main()
