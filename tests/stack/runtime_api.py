"""The HTTP API over the stack, in this process, and what its tests say to it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx

from api.app import create_app
from pipeline.agents.topic_admin import create_topics
from pipeline.settings import Settings
from pipeline.stack.runtime import StackRuntime
from pipeline.stack_wiring import live_generation, open_stack_runtime
from tests.stack.worker import Stack

Event = dict[str, Any]


def event(key: str, body: str = "ポンプの記録。", position: int = 1, **more: Any) -> Event:
    record = {"title": f"記録 {key}", "body": body, **more}
    return {"source": "cmms", "collection": "reports", "key": key, "position": position, "record": record}


@asynccontextmanager
async def serving(settings: Settings) -> AsyncIterator[tuple[StackRuntime, httpx.AsyncClient]]:
    """An API process, as far as one process can hold several."""
    async with open_stack_runtime(settings) as runtime:
        transport = httpx.ASGITransport(create_app(runtime, settings), raise_app_exceptions=False)  # type: ignore[arg-type]
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000", timeout=90) as client:
            yield runtime, client


async def prepared(stack: Stack, *, generation: bool = False) -> None:
    """Make the topics, and, where no worker will, a first generation."""
    await create_topics(stack.settings.kafka, stack.topics.all())
    if generation:
        async with open_stack_runtime(stack.settings) as runtime:
            await live_generation(runtime.state, {})
