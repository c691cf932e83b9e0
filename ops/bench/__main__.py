"""All benchmarks in turn: `python -m ops.bench`, on a machine where nothing else runs."""

import subprocess
import sys

NAMES = ("ingest", "query", "staged_load", "start", "indexes")


def main() -> int:
    """Run each in a process of its own, so that one's memory does not count for another."""
    worst = 0
    for name in NAMES:
        print(f"\n== ops.bench.{name}", flush=True)
        worst = max(worst, subprocess.run([sys.executable, "-m", f"ops.bench.{name}"], check=False).returncode)
    return worst


if __name__ == "__main__":
    sys.exit(main())
