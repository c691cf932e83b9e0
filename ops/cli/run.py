"""run: a profile as a server."""

import asyncio
import socket
from collections.abc import Coroutine
from enum import StrEnum
from typing import Annotated

import typer
from rich.markup import escape

from ops.cli.exits import Exit, fail, run_command
from ops.cli.listening import AddressRefused, NotLoopback, PortTaken, bind, url_of
from ops.cli.logs import configure_logs
from ops.cli.options import Data, settings_or_fail
from ops.cli.show import OUT, print_answer
from ops.connection import connect
from ops.demo_load import ask_lead_question, demo_settings, load_demo
from pipeline.settings import Settings


class ProfileName(StrEnum):
    """What can be served."""

    EMBEDDED = "embedded"
    STACK = "stack"


Host = Annotated[str | None, typer.Option("--host", help="Loopback address to listen at. [default: 127.0.0.1]")]
Port = Annotated[
    int | None,
    typer.Option(
        "--port", min=0, max=65535, envvar=["SHINSEN_PORT", "PORT"], help="Port; 0 takes a free one. [default: 8000]"
    ),
]
Profile = Annotated[
    ProfileName | None, typer.Option("--profile", help="What to serve. [env: SHINSEN_PROFILE, default: embedded]")
]


def run(
    profile: Profile = None,
    port: Port = None,
    host: Host = None,
    data: Data = None,
    demo: Annotated[bool, typer.Option("--demo", help="Load the demo corpus and ask its lead question.")] = False,
    exit_after: Annotated[bool, typer.Option("--exit", help="End instead of serving on (for tests).")] = False,
) -> None:
    """Serve a profile: events in, questions answered, a page at / and the API under /schema.

    embedded is one process over a data folder; stack answers in front of Kafka, PostgreSQL, Weaviate and a SPARQL
    server, whose workers (`python -m pipeline.agents run`) do the indexing.
    Ctrl-C ends it in order with nothing lost; a second Ctrl-C ends it at once.
    """
    settings = settings_or_fail(profile=profile and profile.value, port=port, host=host, data=data)
    if demo and settings.profile == "stack":
        fail("--demo loads the embedded profile; on the stack use `make stack-demo`", Exit.USAGE)
    try:
        sock = bind(settings.host, settings.port)
    except (NotLoopback, AddressRefused) as error:
        fail(str(error), Exit.USAGE)
    except PortTaken as error:
        fail(str(error), Exit.UNAVAILABLE)
    configure_logs(settings, quiet=demo)
    with sock:
        run_command(_serve(demo_settings(settings) if demo else settings, sock, demo=demo, exit_after=exit_after))


async def _serve(settings: Settings, sock: socket.socket, *, demo: bool, exit_after: bool) -> None:
    # Only now, with the port in hand: the runtime and its libraries take a second to import.
    from ops.cli.serving import serving

    url = url_of(sock)
    what = "the stack" if settings.profile == "stack" else escape(str(settings.data))
    OUT.print(f"Shinsen opens {what} ...")
    async with serving(settings, sock) as server:
        if demo and not await _until_stopped(server.stopping, _show_demo(settings, url)):
            return
        if not exit_after:
            OUT.print(f"\n[bold]Serving at {url}[/] (API: {url}/schema). Ctrl-C ends it.", soft_wrap=True)
            await server.stopping.wait()
    OUT.print("ended; everything accepted is kept")


async def _until_stopped(stopping: asyncio.Event, work: Coroutine[object, object, None]) -> bool:
    """Do some work unless Ctrl-C comes first; say whether it was done."""
    task, stop = asyncio.ensure_future(work), asyncio.ensure_future(stopping.wait())
    await asyncio.wait({task, stop}, return_when=asyncio.FIRST_COMPLETED)
    stop.cancel()
    if not task.done():
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return False
    task.result()
    return True


async def _show_demo(settings: Settings, url: str) -> None:
    async with connect(url=url) as connection:
        await load_demo(connection, settings.data)
        OUT.print()
        print_answer(await ask_lead_question(connection))
