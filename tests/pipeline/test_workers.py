"""The pool of model workers: order, lanes, fairness, death, bounds, and no orphans."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pipeline.errors import BackendUnavailable
from pipeline.model_workers.pool import WorkerPool
from pipeline.model_workers.queue import JobKind
from tests.pipeline.worker_kinds import kind

pytestmark = pytest.mark.faults


@pytest.fixture
async def pool() -> AsyncIterator[WorkerPool]:
    pool = WorkerPool(2, patience_s=20)
    yield pool
    await pool.close()
    await pool.close()


@pytest.fixture
async def single() -> AsyncIterator[WorkerPool]:
    """One worker for heavy jobs, one for quick ones."""
    pool = WorkerPool(1, patience_s=20)
    yield pool
    await pool.close()


def _done_at(results: list[str]) -> list[float]:
    return [float(result.split()[-2]) for result in results]


async def test_results_keep_the_order_of_the_texts(pool: WorkerPool) -> None:
    echo = kind("echo", batch=3, settings="*")
    texts = [str(n) for n in range(100)]
    assert await pool.run(echo, texts) == [f"*{text}" for text in texts]
    assert await pool.run(echo, []) == []
    assert len(pool.status()["workers"]) >= 1


async def test_any_text_reaches_the_worker(pool: WorkerPool) -> None:
    texts = ["", "\ud800", "\0", "😀", "a" * 300_000]
    assert await pool.run(kind("echo", batch=10), texts) == ["", "\ufffd", "\0", "😀", "a" * 300_000]


async def test_live_work_goes_before_bulk_work(single: WorkerPool) -> None:
    slow = kind("slow", settings="0.02")
    bulk = asyncio.ensure_future(single.run(slow, ["b"] * 30, "bulk"))
    await single.run(slow, ["warm"])
    await asyncio.sleep(0.05)
    live = await single.run(slow, ["x"])
    bulk_done = _done_at(await bulk)
    assert sum(done < _done_at(live)[0] for done in bulk_done) < 15


async def test_a_small_call_overtakes_the_rest_of_a_big_one(single: WorkerPool) -> None:
    slow = kind("slow", settings="0.02")
    big = asyncio.ensure_future(single.run(slow, ["b"] * 30))
    await single.run(slow, ["warm"])
    small = await single.run(slow, ["s"])
    big_done = _done_at(await big)
    assert sum(done < _done_at(small)[0] for done in big_done) < 15


async def test_quick_jobs_do_not_wait_behind_heavy_ones(single: WorkerPool) -> None:
    heavy, quick = kind("slow", settings="1.0"), kind("echo", quick=True)
    single.register(heavy, quick)
    await single.run(quick, ["warm"])
    blocker = asyncio.ensure_future(single.run(heavy, ["h", "h"]))
    await asyncio.sleep(0.1)
    started = time.monotonic()
    await single.run(quick, ["q"])
    assert time.monotonic() - started < 0.5
    blocker.cancel()


async def test_two_kinds_of_one_document_run_side_by_side(pool: WorkerPool) -> None:
    first, second = (kind("slow", settings="0.1", name=name) for name in ("first", "second"))
    pool.register(first, second)
    await asyncio.gather(pool.run(first, ["warm"]), pool.run(second, ["warm"]))
    one, two = await asyncio.gather(pool.run(first, ["1", "2", "3"]), pool.run(second, ["1", "2", "3"]))
    assert len({result.split()[-1] for result in one}) == 1
    assert {result.split()[-1] for result in one}.isdisjoint(result.split()[-1] for result in two)


async def test_the_event_loop_is_free_meanwhile(pool: WorkerPool) -> None:
    work = asyncio.ensure_future(pool.run(kind("slow", settings="0.3"), ["a", "b"]))
    longest, last = 0.0, time.monotonic()
    while not work.done():
        await asyncio.sleep(0.005)
        longest, last = max(longest, time.monotonic() - last), time.monotonic()
    assert longest < 0.2


async def test_a_killed_worker_is_replaced_and_nothing_is_lost(pool: WorkerPool) -> None:
    slow = kind("slow", batch=4, settings="0.05")
    await pool.run(slow, ["warm"] * 8)
    texts = [str(n) for n in range(40)]
    work = asyncio.ensure_future(pool.run(slow, texts))
    for _ in range(2):
        await asyncio.sleep(0.15)
        for pid in pool.status()["workers"][:1]:
            os.kill(pid, signal.SIGKILL)
    assert [result.split()[0] for result in await work] == texts
    assert pool.status()["restarts"] >= 1


async def test_a_text_that_kills_its_worker_is_tried_three_times(pool: WorkerPool, tmp_path: Path) -> None:
    deadly = kind("deadly", batch=100, settings=str(tmp_path))
    with pytest.raises(BackendUnavailable, match="3 times"):
        await pool.run(deadly, ["a", "poison", "b"])
    attempts = (tmp_path / "attempts").read_text().split()
    assert attempts.count("poison") == 3
    assert await pool.run(deadly, ["a", "b"]) == ["a", "b"]


async def test_what_a_model_raises_is_told_and_its_worker_lives_on(single: WorkerPool) -> None:
    raising = kind("raising", batch=100)
    (before,) = await single.run(raising, ["good"])
    with pytest.raises(BackendUnavailable, match="ValueError: this text is bad"):
        await single.run(raising, ["good", "bad"])
    assert await single.run(raising, ["good"]) == [before]


async def test_a_model_that_cannot_be_loaded_is_unavailable(pool: WorkerPool) -> None:
    with pytest.raises(BackendUnavailable, match="no such model"):
        await pool.run(kind("broken"), ["a"])


async def test_a_library_that_prints_breaks_nothing(pool: WorkerPool, capfd: pytest.CaptureFixture[str]) -> None:
    assert await pool.run(kind("chatty"), ["a"]) == ["a"]
    assert "prints" not in capfd.readouterr().out


async def test_a_stuck_worker_is_killed() -> None:
    pool = WorkerPool(1, patience_s=0.8)
    with pytest.raises(BackendUnavailable, match="no answer"):
        await pool.run(kind("slow", settings="60"), ["a"])
    assert await pool.run(kind("echo"), ["a"]) == ["a"]
    await pool.close()


async def test_a_full_lane_waits_and_a_cancelled_call_gives_its_room_back() -> None:
    pool = WorkerPool(1, capacity=10, patience_s=20)
    slow: JobKind[str] = kind("slow", settings="0.05")
    calls = [asyncio.ensure_future(pool.run(slow, ["four"])) for _ in range(6)]
    await asyncio.sleep(0.01)
    assert pool.status()["waiting"]["live"] <= 2
    calls[0].cancel()
    calls[5].cancel()
    assert [result.split()[0] for (result,) in await asyncio.gather(*calls[1:5])] == ["four"] * 4
    assert len(await pool.run(slow, ["larger than the whole capacity"])) == 1
    await pool.close()


async def test_closing_ends_calls_and_processes(pool: WorkerPool) -> None:
    slow = kind("slow", settings="30")
    calls = [asyncio.ensure_future(pool.run(slow, ["a"])) for _ in range(4)]
    await asyncio.sleep(0.3)
    pids = pool.status()["workers"]
    assert pids
    started = time.monotonic()
    await pool.close()
    assert time.monotonic() - started < 4
    for result in await asyncio.gather(*calls, return_exceptions=True):
        assert isinstance(result, BackendUnavailable)
    assert not any(map(_alive, pids))
    with pytest.raises(BackendUnavailable, match="stopped"):
        await pool.run(slow, ["a"])


async def test_the_last_user_closes_the_pool(pool: WorkerPool) -> None:
    echo = kind("echo")
    pool.register(echo)
    pool.register(kind("slow", settings="0"))
    await pool.release()
    assert await pool.run(echo, ["a"]) == ["a"]
    await pool.release()
    with pytest.raises(BackendUnavailable):
        await pool.run(echo, ["a"])


def test_one_pool_serves_several_event_loops() -> None:
    pool = WorkerPool(1)
    echo = kind("echo")
    assert asyncio.run(pool.run(echo, ["a"])) == ["a"]
    assert asyncio.run(pool.run(echo, ["b"])) == ["b"]
    asyncio.run(pool.close())


async def test_workers_ignore_ctrl_c(single: WorkerPool) -> None:
    slow = kind("slow", settings="0.3")
    work = asyncio.ensure_future(single.run(slow, ["a"]))
    await asyncio.sleep(0.5)
    for pid in single.status()["workers"]:
        os.kill(pid, signal.SIGINT)
    assert len(await work) == 1
    assert single.status()["restarts"] == 0


def test_workers_end_with_their_parent() -> None:
    code = (
        "import asyncio, sys\n"
        "from pipeline.model_workers.pool import WorkerPool\n"
        "from tests.pipeline.worker_kinds import kind\n"
        "async def main():\n"
        "    pool = WorkerPool(2)\n"
        "    await pool.run(kind('slow', settings='0'), ['a'] * 8)\n"
        "    work = asyncio.ensure_future(pool.run(kind('slow', settings='60', name='long'), ['a'] * 8))\n"
        "    await asyncio.sleep(0.3)\n"
        "    print(*pool.status()['workers'], flush=True)\n"
        "    await work\n"
        "asyncio.run(main())\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pids = list(map(int, parent.stdout.readline().split()))
    assert pids
    assert all(map(_alive, pids))
    parent.kill()
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 5
    while any(map(_alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(_alive, pids))


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat")
        return not state.exists() or state.read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False
