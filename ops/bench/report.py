"""What every benchmark prints first and how it prints figures: the machine, the commit, the seed, lines of text."""

import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path


def machine() -> str:
    """Return one line about this machine and this code."""
    commit, dirty = _git("rev-parse", "--short", "HEAD"), _git("status", "--porcelain")
    load = " ".join(f"{value:.2f}" for value in os.getloadavg())
    return (
        f"commit {commit or '?'}{'+' if dirty else ''}; Python {sys.version.split()[0]}; "
        f"{os.cpu_count()} cores, {platform.machine()}, {_processor()}; load before: {load}"
    )


def _git(*arguments: str) -> str:
    """Ask about the repository that this code is from, wherever the command runs; empty when it is from none."""
    here = Path(__file__).parent
    try:
        done = subprocess.run(["git", *arguments], cwd=here, capture_output=True, text=True, check=False, timeout=30)
    except OSError:
        return ""
    return done.stdout.strip()


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:  # noqa: PTH123 - a kernel file
            names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or "unknown processor"


def say(*lines: str) -> None:
    """Print at once, so that a log that is cut off still tells."""
    for line in lines:
        print(line, flush=True)


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which `share` (0..1) of the values lie; nearest rank, no interpolation."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, round(share * len(ordered) + 0.5) - 1))]


def spread(values: Sequence[float]) -> str:
    """Return median, p95, minimum and maximum."""
    return (
        f"p50 {statistics.median(values):.3f}, p95 {percentile(values, 0.95):.3f}, "
        f"min {min(values):.3f}, max {max(values):.3f}, n {len(values)}"
    )


def peak_memory_mib() -> float:
    """Return the peak resident memory of this process, without its children, in MiB."""
    with open("/proc/self/status", encoding="utf-8") as file:  # noqa: PTH123 - a kernel file
        for line in file:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    return 0.0
