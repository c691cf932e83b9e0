"""Exit codes, and how expected errors end a command: what happened, where, what to do next, no traceback."""

import asyncio
import sys
from collections.abc import Coroutine
from enum import IntEnum
from typing import Any, NoReturn, TypeVar

import structlog
import typer
from rich.console import Console
from rich.markup import escape

from ops.cli.logs import log_at
from ops.connection import ApiProblem, NoDataFolder, Unreachable
from pipeline.embedded.data_folder import DataFolderBusy
from pipeline.errors import (
    BackendUnavailable,
    Backpressure,
    InvalidConfiguration,
    NotFound,
    NotFresh,
    NotPossible,
    ShinsenError,
)

Result = TypeVar("Result")
ERRORS = Console(stderr=True, highlight=False, soft_wrap=True)


class Exit(IntEnum):
    """What a command's exit code says; stable."""

    OK = 0
    FAILED = 1
    USAGE = 2
    UNAVAILABLE = 3
    NOT_FOUND = 4
    REFUSED = 5
    NOT_FRESH = 6
    INTERRUPTED = 130


EXIT_CODES = (
    "Exit codes: 0 done; 1 failed; 2 wrong usage or configuration; 3 not reachable or unavailable; 4 not found; "
    "5 refused input or dead letters; 6 not fresh in time."
)

_BY_STATUS = {
    400: Exit.REFUSED,
    404: Exit.NOT_FOUND,
    409: Exit.REFUSED,
    413: Exit.REFUSED,
    415: Exit.REFUSED,
    422: Exit.REFUSED,
    429: Exit.UNAVAILABLE,
    502: Exit.UNAVAILABLE,
    503: Exit.UNAVAILABLE,
    504: Exit.NOT_FRESH,
}
_BY_ERROR: tuple[tuple[type[ShinsenError], Exit], ...] = (
    (NoDataFolder, Exit.NOT_FOUND),
    (Unreachable, Exit.UNAVAILABLE),
    (DataFolderBusy, Exit.UNAVAILABLE),
    (BackendUnavailable, Exit.UNAVAILABLE),
    (Backpressure, Exit.UNAVAILABLE),
    (InvalidConfiguration, Exit.USAGE),
    (NotFresh, Exit.NOT_FRESH),
    (NotFound, Exit.NOT_FOUND),
    (NotPossible, Exit.REFUSED),
)


def exit_code(error: ShinsenError) -> Exit:
    """Return the exit code of an expected error."""
    if isinstance(error, ApiProblem):
        return _BY_STATUS.get(error.status, Exit.FAILED)
    return next((code for kind, code in _BY_ERROR if isinstance(error, kind)), Exit.FAILED)


def fail(message: str, code: Exit = Exit.FAILED) -> NoReturn:
    """Say on standard error what is wrong and end the command."""
    ERRORS.print(f"[bold red]error:[/] {escape(message)}")
    raise typer.Exit(code)


def run_command(work: Coroutine[Any, Any, Result]) -> Result:
    """Run a command's work; expected errors become a message and an exit code."""
    if not structlog.is_configured():
        log_at("warning")  # structlog's own default would write into our output
    try:
        return asyncio.run(work)
    except ShinsenError as error:
        fail(str(error), exit_code(error))
    except KeyboardInterrupt:
        ERRORS.print("interrupted; what was accepted is kept")
        raise typer.Exit(Exit.INTERRUPTED) from None
    except BrokenPipeError:
        # The reader of our output went away (`shinsen ... | head`): nothing is wrong.
        sys.stderr.close()
        raise typer.Exit(Exit.OK) from None
