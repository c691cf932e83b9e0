"""Warm child processes that run SPARQL, and are killed when a query takes too long."""

import asyncio
import contextlib
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Sequence

import msgspec

from pipeline.backends.sparql_child import READY, Request, Response
from pipeline.backends.sparql_guard import check_text
from pipeline.errors import BackendUnavailable, InvalidQuery, QueryTimeout

START_SECONDS = 20.0


class SparqlPool:
    """Up to `size` children, started when first needed and kept. Bound to the loop that first uses it."""

    def __init__(self, size: int = 2) -> None:
        self._free = asyncio.Semaphore(size)
        self._idle: list[Process] = []
        self._all: set[Process] = set()
        self._closed = False

    async def run(
        self,
        sparql: str,
        folder: str,
        graphs: Sequence[str] | None,
        *,
        accept: str,
        max_bytes: int,
        timeout_s: float,
    ) -> bytes:
        """Check and run a query over the checkpoint in `folder`; return the serialized result.

        `timeout_s` covers waiting for a child as well as the work. Raises InvalidQuery, QueryTimeout
        (the child is killed), BackendUnavailable when no child can be started.
        """
        listed = None if graphs is None else list(graphs)
        return await self._ask(Request(sparql, folder, listed, accept, max_bytes, timeout_s), timeout_s)

    async def check(self, sparql: str, timeout_s: float) -> None:
        """Only check a query, for a server that will run it. Raises InvalidQuery, QueryTimeout."""
        await self._ask(Request(sparql, seconds=timeout_s), timeout_s)

    async def close(self) -> None:
        """Kill all children; idempotent."""
        self._closed = True
        for process in list(self._all):
            await self._kill(process)

    async def _ask(self, request: Request, timeout_s: float) -> bytes:
        check_text(request.sparql)
        try:
            async with asyncio.timeout(timeout_s):
                await self._free.acquire()
        except TimeoutError:
            raise QueryTimeout(f"no query process came free within {timeout_s:g} s; try again later") from None
        try:
            process = await self._take()
            return await self._exchange(process, request, timeout_s)
        finally:
            self._free.release()

    async def _exchange(self, process: Process, request: Request, timeout_s: float) -> bytes:
        try:
            async with asyncio.timeout(timeout_s):
                answer = await _talk(process, msgspec.msgpack.encode(request))
        except TimeoutError:
            raise QueryTimeout(f"the query ran longer than {timeout_s:g} s and was stopped; ask for less") from None
        except (EOFError, ConnectionError):
            self._check_open()
            raise InvalidQuery("the query broke its process (out of memory or of stack); ask for less") from None
        else:
            self._idle.append(process)
            process = None  # type: ignore[assignment]
        finally:
            if process is not None:  # also when the caller was cancelled: the work stops
                await self._kill(process)
        response = msgspec.msgpack.decode(answer, type=Response)
        if response.refused:
            raise InvalidQuery(response.refused)
        if response.failed:
            raise BackendUnavailable(f"the graph's checkpoint could not be queried: {response.failed}; try again")
        return response.result

    async def _take(self) -> Process:
        while self._idle:
            process = self._idle.pop()
            if process.returncode is None:
                return process
            self._all.discard(process)
        self._check_open()
        return await self._start()

    def _check_open(self) -> None:
        if self._closed:
            raise BackendUnavailable("the graph is closed; open it again")

    async def _start(self) -> Process:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "pipeline.backends.sparql_child",
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
            env={"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **_NO_PROXY_LEADS_ANYWHERE},
        )
        self._all.add(process)
        try:
            async with asyncio.timeout(START_SECONDS):
                if await _receive(process) == READY:
                    return process
        except (TimeoutError, EOFError):
            pass
        except BaseException:
            await self._kill(process)
            raise
        await self._kill(process)
        raise BackendUnavailable(
            f"the query process did not start ({sys.executable} -m pipeline.backends.sparql_child); run it by hand"
        )

    async def _kill(self, process: Process) -> None:
        self._all.discard(process)
        if process in self._idle:
            self._idle.remove(process)
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


_NO_PROXY_LEADS_ANYWHERE = dict.fromkeys(("http_proxy", "https_proxy", "all_proxy"), "http://127.0.0.1:1")
"""The child has no sockets on Linux; elsewhere this is the second fence after the guard."""


async def _talk(process: Process, request: bytes) -> bytes:
    assert process.stdin is not None
    process.stdin.write(len(request).to_bytes(4, "big") + request)
    await process.stdin.drain()
    return await _receive(process)


async def _receive(process: Process) -> bytes:
    assert process.stdout is not None
    length = int.from_bytes(await process.stdout.readexactly(4), "big")
    return await process.stdout.readexactly(length)
