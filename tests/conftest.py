"""Shared fixtures, and one rule: what was skipped is said, and with REQUIRE_ALL=1 it is a failure."""

import os
import uuid
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import psycopg
import pytest
import structlog
from psycopg.conninfo import make_conninfo

from ops.stack import servers
from ops.stack.errors import StackError
from ops.stack.server import Endpoint

# Tracebacks without the locals of every frame: rich takes seconds for those.
structlog.configure(processors=[structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)])
REQUIRE_ALL = os.environ.get("REQUIRE_ALL") == "1"
SKIPPED: Counter[str] = Counter()
MODULES: list[str] = []


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Note each skip, and fail it where nothing may be skipped."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail"):
        reason = _note(report)
        if REQUIRE_ALL:
            report.outcome = "failed"
            report.longrepr = f"{report.nodeid} was skipped, and REQUIRE_ALL=1 forbids that: {reason}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Note whole modules that are skipped (importorskip); an error here would keep all others from running."""
    report = yield
    if report.skipped:
        MODULES.append(f"{report.nodeid}: {_note(report)}")
    return report


def _note(report: pytest.TestReport | pytest.CollectReport) -> str:
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    reason = reason.removeprefix("Skipped: ")
    SKIPPED[reason] += 1
    return reason


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail the run when a module was skipped where nothing may be."""
    if REQUIRE_ALL and MODULES and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what this machine did not run, and why."""
    for reason, number in sorted(SKIPPED.items()):
        terminalreporter.write_line(f"skipped {number} test{'s' if number > 1 else ''}: {reason}")
    for module in MODULES if REQUIRE_ALL else ():
        terminalreporter.write_line(f"FAILED {module}; REQUIRE_ALL=1 forbids to skip a module")


@pytest.fixture(scope="session")
def postgres_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a real PostgreSQL, started once on free ports."""
    shared = os.environ.get("SHINSEN_TEST_STACK")
    folder = Path(shared) if shared else tmp_path_factory.mktemp("postgres")
    try:
        endpoint = servers.start(["postgres"], folder)["postgres"]
    except StackError as error:
        pytest.skip(f"no PostgreSQL here ({error.what}); next: {error.todo}")
    with psycopg.connect(endpoint.url, autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET fsync = off")  # its data live as long as the tests
        connection.execute("SELECT pg_reload_conf()")
    yield endpoint.url
    if not shared:
        servers.purge(folder)


@pytest.fixture
def database_url(postgres_url: str) -> Iterator[str]:
    """The address of an empty database of this test's own."""
    name = f"t{uuid.uuid4().hex}"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    yield make_conninfo(postgres_url, dbname=name)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(scope="session")
def stack_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Endpoint]]:
    """Return a function that starts a server of ops.stack at its first call, and purges all at the end."""
    yield from _servers_in("SHINSEN_TEST_STACK", tmp_path_factory.mktemp("stack"))


@pytest.fixture(scope="session")
def breakable_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Endpoint]]:
    """The same with servers of their own, which a test may kill."""
    yield from _servers_in("SHINSEN_BREAKABLE_STACK", tmp_path_factory.mktemp("breakable"))


def _servers_in(variable: str, scratch: Path) -> Iterator[Callable[[str], Endpoint]]:
    # Servers of a named folder go on running, to save their start while developing.
    shared = os.environ.get(variable)
    folder = Path(shared) if shared else scratch

    def started(name: str) -> Endpoint:
        try:
            return servers.start([name], folder)[name]
        except StackError as error:
            pytest.skip(f"no {name} here ({error.what}); next: {error.todo}")

    yield started
    if not shared:
        servers.purge(folder)
