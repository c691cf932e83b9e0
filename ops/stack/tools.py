"""The programs that fetching and running need (java, mvn, go, initdb), installed by apt-get where allowed."""

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from ops.stack.errors import StackError

JAVA_AT_LEAST = 17
PACKAGES = {
    "java": "default-jdk-headless",
    "mvn": "maven",
    "go": "golang-go",
    "initdb": "postgresql",
}
POSTGRES_HOME = Path("/usr/lib/postgresql")
POSTGRES_PREFERRED = "15"
APT_TIMEOUT_S = 900


class Tools:
    """Finds programs; installs what is missing when `install` is set."""

    def __init__(self, *, install: bool, logs: Path) -> None:
        """Logs of apt-get go to the given folder."""
        self.install = install
        self.logs = logs
        self._updated = False

    def java(self) -> str:
        """A java that is new enough."""
        path = self._need("java")
        answer = subprocess.run([path, "-version"], capture_output=True, text=True, timeout=60, check=False)
        found = re.search(r'version "(\d+)', answer.stderr)
        if found is None or int(found.group(1)) < JAVA_AT_LEAST:
            said = answer.stderr.strip().splitlines()[:1]
            raise StackError(
                f"{path} is not Java {JAVA_AT_LEAST} or newer: {said}",
                todo="install Debian's openjdk-17-jre-headless (or newer) and put its java first on the PATH",
            )
        return path

    def mvn(self) -> str:
        """Maven."""
        return self._need("mvn")

    def go(self) -> str:
        """The Go toolchain; whether it is new enough is for `go install` to say."""
        return self._need("go")

    def postgres_bin(self) -> Path:
        """The folder with initdb, postgres and psql."""
        folder = postgres_bin()
        if folder is None:
            self._apt("initdb")
            folder = postgres_bin()
        if folder is None:
            raise _missing("initdb")
        return folder

    def _need(self, program: str) -> str:
        path = which(program)
        if path is None:
            self._apt(program)
            path = which(program)
        if path is None:
            raise _missing(program)
        return path

    def _apt(self, program: str) -> None:
        if not self.install or shutil.which("apt-get") is None:
            raise _missing(program)
        prefix = [] if os.geteuid() == 0 else ["sudo", "-n"]
        if not self._updated:
            self._apt_get([*prefix, "apt-get", "update"], program)
            self._updated = True
        # Debian's own configuration files stay as they are; no question may stop an unattended run.
        options = ["-y", "--no-install-recommends", "-o", "Dpkg::Options::=--force-confold"]
        self._apt_get([*prefix, "apt-get", "install", *options, PACKAGES[program]], program)

    def _apt_get(self, argv: Sequence[str], program: str) -> None:
        run_logged(
            argv,
            log=self.logs / "apt-get.log",
            timeout=APT_TIMEOUT_S,
            env={"DEBIAN_FRONTEND": "noninteractive"},
            todo=f"install the package {PACKAGES[program]} by hand, then try again",
        )


def which(program: str) -> str | None:
    """The path of a program; JAVA_HOME and Go's usual folder count too."""
    extra = {"java": os.environ.get("JAVA_HOME", "") + "/bin/java", "go": "/usr/local/go/bin/go"}
    found = shutil.which(program)
    if found is None and os.access(extra.get(program, ""), os.X_OK):
        return extra[program]
    return found


def postgres_bin() -> Path | None:
    """The folder of PostgreSQL's programs: version 15 before newer ones, Debian's before the PATH's."""
    versions = [path.parent.parent for path in POSTGRES_HOME.glob("*/bin/initdb")]
    versions.sort(key=lambda path: (path.name == POSTGRES_PREFERRED, _number(path.name)))
    if versions:
        return versions[-1] / "bin"
    found = shutil.which("initdb")
    return Path(found).resolve().parent if found else None


def _number(text: str) -> int:
    return int(text) if text.isdigit() else 0


def _missing(program: str) -> StackError:
    return StackError(
        f"{program} is not installed",
        todo=f"install the package {PACKAGES[program]} (Debian: apt-get install {PACKAGES[program]}), "
        "or run `python -m ops.stack fetch --install`",
    )


def run_logged(
    argv: Sequence[str],
    *,
    log: Path,
    timeout: float,
    todo: str,
    env: dict[str, str] | None = None,
    cwd: Path | None = None,
) -> None:
    """Run a command to its end with its output in a log; raise when it fails or takes too long."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as out:
        out.write(f"--- {' '.join(argv)}\n".encode())
        out.flush()
        try:
            done = subprocess.run(
                list(argv),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(env or {})},
                cwd=cwd,
                timeout=timeout,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise StackError(f"{argv[0]} took longer than {timeout:.0f} s", log=log, todo=todo) from error
        except OSError as error:
            raise StackError(f"cannot run {argv[0]}: {error}", log=log, todo=todo) from error
    if done.returncode != 0:
        raise StackError(f"{argv[0]} failed with exit status {done.returncode}", log=log, todo=todo)
