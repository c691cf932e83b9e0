"""Opening, pinning and dropping a generation."""

import asyncio
from typing import Any

import pytest

from pipeline.generations import OpenGeneration, next_name


class Part:
    """A chunk index, a graph or a builder that remembers its end."""

    def __init__(self) -> None:
        self.ended = ""

    async def stop(self) -> None:
        self.ended = "stopped"

    async def close(self) -> None:
        self.ended = "closed"

    async def drop(self) -> None:
        self.ended = "dropped"


def opened() -> tuple[OpenGeneration, list[Part]]:
    parts: list[Any] = [Part(), Part(), Part()]
    return OpenGeneration("g1", *parts), parts


async def test_one_that_nobody_reads_is_dropped_at_once() -> None:
    """As at the start after a kill in the middle of a rebuild."""
    generation, parts = opened()
    await generation.drop(0.0)
    assert [part.ended for part in parts] == ["dropped", "dropped", "stopped"]


async def test_dropping_waits_for_readers() -> None:
    generation, parts = opened()
    async with generation.pinned():
        dropping = asyncio.create_task(generation.drop(5.0))
        await asyncio.sleep(0.02)
        assert parts[0].ended == ""
    await dropping
    assert parts[0].ended == "dropped"


async def test_a_reader_that_does_not_end_holds_nothing_back_for_ever() -> None:
    generation, parts = opened()
    async with generation.pinned():
        await generation.drop(0.01)
        assert parts[0].ended == "dropped"


async def test_a_pin_ends_with_its_block_also_by_an_error() -> None:
    generation, parts = opened()
    with pytest.raises(KeyError):
        async with generation.pinned() as indexes:
            assert indexes.generation == "g1"
            raise KeyError
    await asyncio.wait_for(generation.drop(5.0), 1.0)
    assert parts[0].ended == "dropped"


def test_names_of_generations() -> None:
    assert next_name([]) == "g1"
    assert next_name(["g1", "g9", "g10", "x"]) == "g11"
