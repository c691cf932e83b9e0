"""A skip is said with its reason, and with REQUIRE_ALL=1 it is a failure (tests/conftest.py)."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = """
import pytest

def test_runs(): pass

def test_needs_a_tool(): pytest.skip("no such server here; next: install it")

@pytest.mark.skipif(True, reason="no GPU")
def test_needs_a_gpu(): pass

@pytest.mark.xfail(strict=True)
def test_known_gap(): assert False
"""
WHOLE = 'import pytest\npytest.importorskip("no_such_module_at_all")\n'


def run(folder: Path, require_all: str, some: str = TESTS) -> subprocess.CompletedProcess[str]:
    (folder / "test_some.py").write_text(some)
    (folder / "test_whole.py").write_text(WHOLE)
    root = Path(__file__).parents[1]
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "tests.conftest", "--rootdir", str(folder), str(folder)],
        cwd=root,
        env=os.environ | {"REQUIRE_ALL": require_all, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("require_all", ["", "0"])
def test_skips_are_said(tmp_path: Path, require_all: str) -> None:
    done = run(tmp_path, require_all)
    assert done.returncode == 0, done.stdout
    assert "skipped 1 test: no such server here; next: install it" in done.stdout
    assert "skipped 1 test: no GPU" in done.stdout
    assert "no_such_module_at_all" in done.stdout


def test_a_skipped_module_alone_is_a_failure_too(tmp_path: Path) -> None:
    done = run(tmp_path, "1", "def test_runs(): pass")
    assert done.returncode == 1
    assert "no_such_module_at_all" in done.stdout


def test_where_all_is_required_a_skip_is_a_failure(tmp_path: Path) -> None:
    done = run(tmp_path, "1")
    assert done.returncode != 0
    assert "REQUIRE_ALL=1 forbids that: no GPU" in done.stdout
    assert "REQUIRE_ALL=1 forbids that: no such server here" in done.stdout
    assert "REQUIRE_ALL=1 forbids to skip a module" in done.stdout
    assert "1 failed, 1 passed, 1 skipped, 1 xfailed, 1 error" in done.stdout
    assert "test_known_gap" not in done.stdout
