"""What a writer leaves behind when it is cut off, over a real state store."""

import asyncio
from pathlib import Path

import pytest

from pipeline.ports.publishing import Finish
from pipeline.writer_marks import LEASE_S, WriterMarks
from tests.contracts.examples import DOCUMENT, manifest, record
from tests.differential.running import running

OVER = -60.0
"""An age that every mark is above."""


@pytest.mark.parametrize("times", [1, 2, 3])
async def test_however_often_it_is_cut_off_its_mark_outlives_what_it_does_next(times: int, tmp_path: Path) -> None:
    """A request may be carried out late, and who stops a worker that does not end at once asks again."""
    async with running(tmp_path) as runtime:
        state, generation = runtime.state, "g"
        marks = WriterMarks(state, generation, "w", LEASE_S)
        reached = asyncio.Event()

        async def write() -> None:
            try:
                reached.set()
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0.05)  # as a client that lets go of its connection

        await state.advance([record(DOCUMENT, 1, "e1")])
        await marks.begin([DOCUMENT], 0)
        writing = asyncio.create_task(marks.write([DOCUMENT], [write]))
        await reached.wait()
        for _ in range(times):
            writing.cancel()
            await asyncio.sleep(0.01)
        with pytest.raises(asyncio.CancelledError):
            await writing

        await marks.begin([DOCUMENT], 0)
        await state.commit(generation, [manifest()])
        done = [Finish(manifest())]
        assert await state.finish(generation, done, 1, writer=marks.writer, stale=marks.stale) == [True]
        assert await state.leftovers(generation, older_s=OVER, announces=False) == [DOCUMENT]
