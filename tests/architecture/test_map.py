"""ARCHITECTURE.md's map against the tree: what it names exists, and every package is on it."""

import re

from tests.architecture.tree import PACKAGES, ROOT, name_of

PATH = re.compile(r"(?<![\w./-])((?:schemas|pipeline|api|ops|tests|compose|requirements)/[\w./-]*)")
DOCUMENTS = ("ARCHITECTURE.md", "CONTRIBUTING.md", "README.md", "README.ja.md")


def named_in(document: str) -> set[str]:
    """Paths below our folders that a document names; a trailing dot ends a sentence."""
    text = (ROOT / document).read_text(encoding="utf-8")
    return {match.rstrip("./") for match in PATH.findall(text)}


def test_every_path_that_the_documents_name_exists() -> None:
    gone = {
        document: sorted(path for path in named_in(document) if not (ROOT / path).exists())
        for document in DOCUMENTS
        if (ROOT / document).exists()
    }
    assert {document: paths for document, paths in gone.items() if paths} == {}


def test_every_package_is_on_the_map() -> None:
    packages = {
        name_of(path.parent) for package in PACKAGES for path in (ROOT / package).rglob("*.py") if path.parent != ROOT
    }
    on_the_map = named_in("ARCHITECTURE.md")
    missing = sorted(
        package for package in packages - set(PACKAGES) if package not in on_the_map and _has_code(package)
    )
    assert missing == []


def test_every_module_at_the_top_of_a_package_is_on_the_map() -> None:
    on_the_map = named_in("ARCHITECTURE.md")
    modules = {name_of(path) for package in ("pipeline", "api") for path in (ROOT / package).glob("*.py")}
    assert sorted(module for module in modules if module not in on_the_map and not module.endswith("__init__.py")) == []


def _has_code(package: str) -> bool:
    return any(path.name != "__init__.py" for path in (ROOT / package).glob("*.py"))
