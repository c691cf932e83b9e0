"""One server over one data folder, until Ctrl-C: the first ends it in order, the second at once."""

import asyncio
import multiprocessing
import os
import signal
import socket
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from importlib.util import find_spec

import uvicorn
from litestar import Litestar

from api.app import create_app
from ops.cli.exits import Exit
from ops.cli.listening import url_of
from ops.in_process import in_process
from ops.profile import remember
from pipeline.errors import InvalidConfiguration
from pipeline.settings import Settings

STACK_PACKAGES = ("aiokafka", "psycopg", "weaviate")
GRACE_S = 5
"""Seconds that open requests may take after the first Ctrl-C."""


class Serving(uvicorn.Server):
    """Uvicorn under our own signal handlers: its own would end the event loop before the stores are closed."""

    def __init__(self, config: uvicorn.Config) -> None:
        """Prepare; nothing listens yet."""
        super().__init__(config)
        self.stopping = asyncio.Event()
        self.closed = asyncio.Event()

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Leave the signals alone."""
        yield

    def on_signal(self) -> None:
        """End in order; when asked again, at once (whatever was accepted is on disk)."""
        if self.stopping.is_set():
            for worker in multiprocessing.active_children():
                worker.kill()
            os._exit(Exit.INTERRUPTED)
        self.stopping.set()
        self.should_exit = True


@asynccontextmanager
async def serving(settings: Settings, sock: socket.socket) -> AsyncIterator[Serving]:
    """Serve on a socket: `settings.data`, whose folder announces the address, or the stack."""
    loop = asyncio.get_running_loop()
    async with _opened(settings) as (application, announce):
        config = uvicorn.Config(
            application,
            log_config=None,
            access_log=False,
            lifespan="off",  # see `in_process`
            server_header=False,
            timeout_graceful_shutdown=GRACE_S,
        )
        server = Serving(config)
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, server.on_signal)
        task = asyncio.create_task(server.serve(sockets=[sock]))
        try:
            await _started(server, task)
            announce(url_of(sock))
            yield server
        finally:
            server.should_exit = True
            await task


@asynccontextmanager
async def _opened(settings: Settings) -> AsyncIterator[tuple[Litestar, Callable[[str], None]]]:
    """Open the profile that the settings ask for; the function announces the address to whom it concerns."""
    if settings.profile == "stack":
        missing = [name for name in STACK_PACKAGES if find_spec(name) is None]
        if missing:
            raise InvalidConfiguration(f"the stack needs {', '.join(missing)}: pip install 'shinsen[stack]'")
        from pipeline.stack_wiring import open_stack_runtime

        async with open_stack_runtime(settings) as runtime:
            yield create_app(runtime, settings), lambda _url: None
        return
    async with in_process(settings) as opened:
        remember(settings)
        yield opened.app, opened.runtime.folder.announce


async def _started(server: Serving, task: "asyncio.Task[None]") -> None:
    while not server.started and not task.done():  # noqa: ASYNC110 - uvicorn has no event for it
        await asyncio.sleep(0.01)
    if task.done():
        task.result()
