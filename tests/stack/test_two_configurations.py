"""Workers of two configurations side by side: neither writes into what the other builds; the new one takes over."""

import asyncio
import signal
import subprocess
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from ops.stack.server import Endpoint
from pipeline.agents.service import GRACE_S
from pipeline.settings import Settings
from pipeline.stack_wiring import open_stack_runtime, open_state
from schemas.outcome import TokenPart
from tests.stack.test_replay import api, built, memo, post
from tests.stack.worker import Stack

pytestmark = [pytest.mark.stack, pytest.mark.faults, pytest.mark.timeout(400)]
MAPPING = """source: dms
collection: memos
title: "{title}"
body: ["{body}"]
type: changed
"""


@pytest.fixture
async def stack(stack_server: Callable[[str], Endpoint], tmp_path: Path) -> AsyncIterator[Stack]:
    stack = Stack(stack_server, "fuseki", tmp_path)
    assert await asyncio.to_thread(stack.command("create-topics").wait, 60) == 0, stack.tail()
    yield stack
    stack.end()
    async with open_stack_runtime(stack.settings) as runtime:
        for one in await runtime.state.generations():
            async with runtime.replays.indexes(one.name) as indexes:
                await indexes.chunks.drop()
                await indexes.graph.drop()
    await stack.remove()


def configured(stack: Stack, folder: Path, mapping: str = MAPPING) -> dict[str, object]:
    folder.mkdir()
    (folder / "memos.yaml").write_text(mapping)
    return {"mappings": folder}


async def said(stack: Stack, word: str, worker: "subprocess.Popen[bytes]") -> None:
    # A worker that has just gone counts for GRACE_S, so whoever takes its generation over says so that much later.
    async with asyncio.timeout(GRACE_S + 60):
        while word not in stack.log.read_text():
            assert worker.poll() is None, stack.tail()
            await asyncio.sleep(0.1)


async def types(settings: Settings, generation: str) -> set[str]:
    async with open_state(settings) as state:
        return {manifest.type async for manifest in state.scan_manifests(generation)}


async def test_blue_and_green(stack: Stack, tmp_path: Path) -> None:
    changed = configured(stack, tmp_path / "mappings")
    blue = stack.start(worker_name="blue")
    await stack.publish([memo(f"dms/memos/M{n}", 1, f"F-{n} を点検した。") for n in range(8)])
    await stack.settled(blue)
    before = await types(stack.settings, "g1")
    assert "changed" not in before
    green = stack.start(worker_name="green", **changed)
    await said(stack, "generation_left_to_others", green)
    await stack.publish([memo(f"dms/memos/M{n}", 2, f"F-{n} を直した。") for n in range(8)])
    await stack.settled(blue, green)
    assert await types(stack.settings, "g1") == before, "the new configuration wrote into the old indexes"
    now = stack.settings
    stack.settings = now.model_copy(update=changed)
    async with api(stack) as (runtime, client):
        assert (await post(client, "/v1/replay", into="new"))["generation"] == "g2"
        await built(runtime, "g2")
        assert (await types(now, "g1"), await types(now, "g2")) == (before, {"changed"})
        await post(client, "/v1/generations/g2/promote", wait="60s")
        await stack.publish([memo("dms/memos/M1", 3, "F-1 を片付けた。")])
        await stack.settled(blue, green)
        assert (await types(now, "g1"), await types(now, "g2")) == (before, {"changed"})
        assert await post(client, "/v1/generations/prune") == {"pruned": ["g1"]}
    assert "generation_of_other_versions_served" not in stack.log.read_text()


async def test_a_live_generation_that_nobody_else_serves_is_served_and_that_is_said(
    stack: Stack, tmp_path: Path
) -> None:
    blue = stack.start(worker_name="blue")
    await stack.publish([memo("dms/memos/M1", 1, "F-1 を点検した。")])
    await stack.settled(blue)
    blue.send_signal(signal.SIGTERM)
    assert await asyncio.to_thread(blue.wait, 60) == 0, stack.tail()
    green = stack.start(worker_name="green", **configured(stack, tmp_path / "mappings"))
    await said(stack, "generation_of_other_versions_served", green)
    await stack.publish([memo("dms/memos/M2", 1, "F-2 を点検した。")])
    await stack.settled(green)
    assert "changed" in await types(stack.settings, "g1")
    again = stack.start(worker_name="blue")
    await said(stack, "generation_left_to_others", green)
    await said(stack, "generation_let_go", green)
    await stack.publish([memo("dms/memos/M3", 1, "F-3 を点検した。")])
    await stack.settled(green, again)
    async with open_state(stack.settings) as state:
        found = (await state.manifests("g1", ["dms/memos/M3"]))["dms/memos/M3"]
    assert found.type != "changed", "whoever the generation was built by has it back"


async def test_a_rebuild_that_refuses_says_nothing_of_what_is_live(stack: Stack, tmp_path: Path) -> None:
    bad = configured(stack, tmp_path / "mappings", MAPPING.replace("{title}", "{nothing}"))
    blue = stack.start(worker_name="blue")
    await stack.publish([memo(f"dms/memos/M{n}", 1, f"F-{n} を点検した。") for n in range(3)])
    await stack.settled(blue)
    green = stack.start(worker_name="green", **bad)
    now = stack.settings
    stack.settings = now.model_copy(update=bad)
    async with api(stack) as (runtime, client):
        await post(client, "/v1/replay", into="new")
        await built(runtime, "g2")
        await stack.settled(blue, green)
        assert len(await stack.read_dead_letters()) >= 3
        assert await runtime.state.dead_letters() == []
        assert (await runtime.signals()).dead_letters == 0
        parts = [TokenPart(document=m.document, position=m.position) async for m in runtime.state.scan_manifests("g1")]
        await runtime.wait_settled(parts, 5)
        await post(client, "/v1/generations/g2/promote", wait="60s")
        assert len(await runtime.state.dead_letters()) == 3
        await post(client, "/v1/generations/rollback", wait="60s")
        assert await runtime.state.dead_letters() == []
        assert await post(client, "/v1/generations/prune") == {"pruned": ["g2"]}
    ends = [h["shinsen-generation"] for _, _, h in await stack.read_dead_letters()]
    assert set(ends) == {b"g2"}
