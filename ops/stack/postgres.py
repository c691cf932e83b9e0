"""PostgreSQL: a cluster of our own with logical decoding."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ops.stack.errors import StackError
from ops.stack.fetch import Fetcher
from ops.stack.ports import HOST
from ops.stack.process import Launch, as_user, named_in, wait_until
from ops.stack.server import Server, Site
from ops.stack.tools import postgres_bin

ROLE = "shinsen"
DATABASE = "shinsen"
# PostgreSQL refuses to run as root, so root hands it to one of these.
USERS = ("postgres", "nobody")
# The kernel's limit for the path of a socket is 107 bytes, and the name in it is up to `.s.PGSQL.65535.lock`.
SOCKET_DIR_MAX = 107 - len("/.s.PGSQL.65535.lock")
INITDB_TIMEOUT_S = 120


class Postgres(Server):
    """One cluster, role `shinsen` (no password, loopback only), database `shinsen`."""

    name = "postgres"
    port_names = ("sql",)
    # Fast shutdown: SIGTERM would wait for the clients to go.
    stop_signal = signal.SIGINT

    def fetch(self, fetcher: Fetcher) -> None:
        """Debian's `postgresql`."""
        fetcher.tools.postgres_bin()

    def choose_home(self, data_dir: Path) -> Path:
        """In the data directory, unless the user that PostgreSQL runs as cannot enter it."""
        home = data_dir / self.name
        user = run_as()
        if user is None:
            return home
        if _can_enter(user, data_dir):
            home.mkdir(exist_ok=True)
        else:
            # A folder below a private one, such as /root or pytest's tmp_path.
            home = Path(tempfile.mkdtemp(prefix="shinsen-stack-postgres-", dir="/var/tmp"))
        shutil.chown(home, user)
        return home

    def prepare(self, site: Site) -> None:
        """Create the cluster and the database."""
        # After a kill -9 the backends take a moment to notice, and block a new start until then.
        wait_until(lambda: not named_in(site.home / "cluster", "postgres"), 20)
        if (site.home / "cluster").exists():
            return
        part = site.home / "cluster.part"
        shutil.rmtree(part, ignore_errors=True)
        _run(site, ["initdb", "-D", str(part), "-U", ROLE, "--auth=trust", "-E", "UTF8", "--no-locale"])
        _run(site, ["postgres", "--single", "-D", str(part), "postgres"], stdin=f"CREATE DATABASE {DATABASE}\n")
        part.rename(site.home / "cluster")

    def launch(self, site: Site) -> Launch:
        """The postmaster, on loopback and on a socket in its home when the path is short enough."""
        home = str(site.home)
        settings = {
            "listen_addresses": HOST,
            "port": str(site.ports["sql"]),
            "unix_socket_directories": home if len(os.fsencode(home)) <= SOCKET_DIR_MAX else "",
            "wal_level": "logical",
        }
        options = [word for key, value in settings.items() for word in ("-c", f"{key}={value}")]
        return Launch([_program("postgres"), "-D", f"{home}/cluster", *options], user=run_as())

    def healthy(self, site: Site) -> bool:
        """Whether `SELECT 1` works."""
        argv = [_program("psql"), "-XAtqw", "-c", "SELECT 1", self.url(site)]
        env = {**os.environ, "PGCONNECT_TIMEOUT": "3"}
        try:
            done = subprocess.run(argv, env=env, capture_output=True, timeout=5, check=False)
        except subprocess.TimeoutExpired:
            return False
        return done.stdout.strip() == b"1"

    def url(self, site: Site) -> str:
        """A libpq address."""
        return f"postgresql://{ROLE}@{HOST}:{site.ports['sql']}/{DATABASE}"


def run_as() -> str | None:
    """The user to run PostgreSQL as; None when we are not root."""
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    for name in USERS:
        if name in known:
            return name
    raise StackError("no user to run PostgreSQL as", todo="install the package postgresql, which makes `postgres`")


def _can_enter(user: str, folder: Path) -> bool:
    done = subprocess.run(
        ["/bin/sh", "-c", 'cd "$1"', "sh", str(folder)],
        cwd="/",
        capture_output=True,
        check=False,
        **as_user(user),
    )
    return done.returncode == 0


def _program(name: str) -> str:
    folder = postgres_bin()
    if folder is None:
        raise StackError("PostgreSQL is not installed", todo="run `python -m ops.stack fetch postgres --install`")
    return str(folder / name)


def _run(site: Site, argv: Sequence[str], stdin: str = "") -> None:
    with site.log.open("ab") as out:
        done = subprocess.run(
            [_program(argv[0]), *argv[1:]],
            input=stdin.encode(),
            stdout=out,
            stderr=subprocess.STDOUT,
            cwd=site.home,
            timeout=INITDB_TIMEOUT_S,
            check=False,
            **as_user(run_as()),
        )
    if done.returncode != 0:
        raise StackError(f"{argv[0]} failed", log=site.log, todo="see the log; a full disk is a common cause")
