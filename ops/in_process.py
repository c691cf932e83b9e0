"""The embedded runtime with the HTTP application over it, in this process."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
from litestar import Litestar

from api.app import create_app
from ops.profile import with_remembered
from pipeline.embedded.runtime import EmbeddedRuntime
from pipeline.settings import Settings
from pipeline.wiring import open_embedded


class Opened(msgspec.Struct, frozen=True):
    """A runtime and the application that serves it."""

    runtime: EmbeddedRuntime
    app: Litestar


@asynccontextmanager
async def in_process(settings: Settings) -> AsyncIterator[Opened]:
    """Open the data folder for writing. Raises DataFolderBusy, InvalidConfiguration, BackendUnavailable."""
    settings = with_remembered(settings)
    async with open_embedded(settings) as runtime:
        # No lifespan: the application opens nothing of its own, the runtime is what lives.
        yield Opened(runtime, create_app(runtime, settings))
