"""Fetches jars and binaries into the cache, each folder whole or not at all."""

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from ops.stack.errors import StackError
from ops.stack.state import locked
from ops.stack.tools import Tools, run_logged

CACHE_VARIABLE = "SHINSEN_STACK_CACHE"
MAVEN_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
MAVEN_TIMEOUT_S = 900
GO_TIMEOUT_S = 1800
PIP_TIMEOUT_S = 600
# Another clone may be building Weaviate, which takes minutes on two cores.
LOCK_WAIT_S = GO_TIMEOUT_S + 60


def default_cache() -> Path:
    """Where binaries are kept when nothing else is said."""
    named = os.environ.get(CACHE_VARIABLE)
    return Path(named).expanduser().resolve() if named else Path.home() / ".cache" / "shinsen-stack"


class Fetcher:
    """Fetches through the package clients as they are configured on this machine."""

    def __init__(self, cache: Path, *, install: bool) -> None:
        """Missing Debian packages are installed when `install` is set."""
        self.cache = cache
        self.tools = Tools(install=install, logs=cache / "logs")

    def maven(self, folder: str, artifacts: Sequence[str]) -> None:
        """Copy the artifacts (`group:name:version`) and all that they need into `folder`."""
        self.tools.java()
        with self._fresh(folder) as part:
            if part is None:
                return
            program = self.tools.mvn()
            pom = part / "pom.xml"
            pom.write_text(pom_text(artifacts))
            run_logged(
                [
                    program,
                    "-B",
                    "-f",
                    str(pom),
                    MAVEN_PLUGIN,
                    f"-DoutputDirectory={part}",
                    "-DincludeScope=runtime",
                ],
                log=self._log(folder),
                timeout=MAVEN_TIMEOUT_S,
                todo="check that Maven reaches its repository (its settings.xml, proxy), then fetch again",
            )

    def go(self, folder: str, package: str) -> None:
        """Build the command of a Go module into `folder`."""
        with self._fresh(folder) as part:
            if part is None:
                return
            program = self.tools.go()
            run_logged(
                [program, "install", "-trimpath", package],
                log=self._log(folder),
                timeout=GO_TIMEOUT_S,
                env={"GOBIN": str(part), "CGO_ENABLED": "0"},
                cwd=part,
                todo="when the log says `requires go >=`, put a newer Go first on the PATH (Debian: golang-go of a "
                "newer release or its backports); otherwise check Go's proxy settings; then fetch again",
            )

    def pip(self, folder: str, requirement: str) -> None:
        """Install one package, without what it requires, into `folder`."""
        with self._fresh(folder) as part:
            if part is None:
                return
            run_logged(
                [sys.executable, "-m", "pip", "install", "--no-deps", "--target", str(part), requirement],
                log=self._log(folder),
                timeout=PIP_TIMEOUT_S,
                todo=f"install {requirement} into this Python's environment by hand, then try again",
            )

    def _log(self, folder: str) -> Path:
        return self.cache / "logs" / f"{folder}.log"

    @contextlib.contextmanager
    def _fresh(self, folder: str) -> Iterator[Path | None]:
        """A scratch folder that becomes `folder` when the body succeeds; None when it is there already."""
        goal = self.cache / folder
        try:
            self.cache.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            todo = f"set {CACHE_VARIABLE} (or --cache) to a folder that can be written"
            raise StackError(f"cannot make the cache {self.cache}: {error}", todo=todo) from error
        with locked(self.cache / f"{folder}.lock", LOCK_WAIT_S):
            if goal.is_dir():
                yield None
                return
            part = Path(tempfile.mkdtemp(prefix=f"{folder}.part-", dir=self.cache))
            try:
                yield part
                # The server may run as another user than the one who fetched.
                part.chmod(0o755)
                part.rename(goal)
            finally:
                shutil.rmtree(part, ignore_errors=True)


def pom_text(artifacts: Sequence[str]) -> str:
    """A project file that has nothing but dependencies."""
    rows = []
    for artifact in artifacts:
        group, name, version = (escape(part) for part in artifact.split(":"))
        rows.append(
            f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId>"
            f"<version>{version}</version></dependency>"
        )
    return (
        "<project><modelVersion>4.0.0</modelVersion><groupId>shinsen</groupId><artifactId>stack</artifactId>"
        f"<version>1</version><packaging>pom</packaging><dependencies>{''.join(rows)}</dependencies></project>\n"
    )
