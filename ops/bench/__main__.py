"""All benchmarks in turn: `python -m ops.bench`, on a machine where nothing else runs."""

import subprocess
import sys

EMBEDDED = ("ingest", "query", "staged_load", "start", "indexes")
STACK = (
    "stack_replay",
    "stack_fresh --models stub",
    "stack_fresh --models real",
    "stack_overhead --models stub",
    "stack_overhead --models real",
    "stack_scale",
    "stack_memory",
)
"""Each with servers of its own: see ops/bench/stack_installation.py."""


def main() -> int:
    """Run each in a process of its own, so that one's memory does not count for another."""
    worst = 0
    for command in (*EMBEDDED, *STACK):
        print(f"\n== ops.bench.{command}", flush=True)
        done = subprocess.run([sys.executable, "-m", *f"ops.bench.{command}".split()], check=False)
        worst = max(worst, done.returncode)
    return worst


if __name__ == "__main__":
    sys.exit(main())
