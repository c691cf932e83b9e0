"""Several things at once: all run together, and a failure ends the rest."""

import asyncio

import pytest

from api.retrieval.beside import beside


async def test_all_run_at_once_and_answer_in_order() -> None:
    met = asyncio.Barrier(3)

    async def meet(name: str) -> str:
        async with asyncio.timeout(5):
            await met.wait()
        return name

    assert await beside(meet("a"), meet("b"), meet("c")) == ["a", "b", "c"]


@pytest.mark.parametrize("failing", [0, 1])
async def test_a_failure_ends_the_call_and_cancels_the_rest(failing: int) -> None:
    ended = asyncio.Event()

    async def fail() -> str:
        await asyncio.sleep(0)
        raise KeyError("it")

    async def wait() -> str:
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()
        return "never"

    async def answer() -> str:
        return "there"

    calls = [fail(), wait()] if failing == 0 else [answer(), fail(), wait()]
    with pytest.raises(KeyError, match="it"):
        await beside(*calls)
    async with asyncio.timeout(5):
        await ended.wait()
