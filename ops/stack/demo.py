"""The demo corpus over a running stack: published through the API into the topic of events, then asked about."""

import asyncio
import os
import time
from pathlib import Path

from ops.stack import addresses, servers
from ops.stack.errors import StackError

CONFIGURED = ("SHINSEN_MAPPINGS", "SHINSEN_ONTOLOGY", "SHINSEN_PATTERNS", "SHINSEN_IDENTIFIERS")


def configuration() -> dict[str, str]:
    """The demo's mappings, ontology and patterns, unless the environment names any; those it keeps."""
    # Only now: what reads the corpus is not needed for starting servers.
    from ops.demo_load import demo_settings
    from pipeline.settings import Settings

    given = {name: str(Path(os.environ[name]).resolve()) for name in CONFIGURED if os.environ.get(name)}
    if given:
        return given
    demo = demo_settings(Settings())
    return {f"SHINSEN_{name.upper()}": str(getattr(demo, name)) for name in ("mappings", "ontology", "patterns")}


def load(data_dir: Path) -> int:
    """Publish the corpus into the stack that runs, wait until it is indexed, ask the lead question."""
    url = servers.endpoint("api", data_dir).url
    if os.environ.get("SHINSEN_MAPPINGS") or addresses.read(data_dir).get("SHINSEN_MAPPINGS") != _mappings():
        raise StackError(
            "this stack was started with other mappings (SHINSEN_MAPPINGS), which do not know the demo's records",
            todo="unset SHINSEN_MAPPINGS, then make stack-down and make stack",
        )
    asyncio.run(_load(url, data_dir.resolve()))
    return 0


def _mappings() -> str:
    return configuration().get("SHINSEN_MAPPINGS", "")


async def _load(url: str, data_dir: Path) -> None:
    from ops.cli.show import print_answer
    from ops.connection import connect
    from ops.demo_load import ask_lead_question, load_demo

    began = time.monotonic()
    async with connect(url=url) as connection:
        await load_demo(connection, data_dir)
        print(f"published and indexed in {time.monotonic() - began:.1f} s")
        print_answer(await ask_lead_question(connection))
