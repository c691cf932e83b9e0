"""Where Shinsen is reached: a running server, or the embedded runtime opened in this process. Always over HTTP."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import msgspec

from ops.profile import read_settings
from pipeline.embedded.data_folder import holder_of
from pipeline.errors import ShinsenError
from pipeline.settings import Settings

CONNECT_TIMEOUT_S = 5.0
READ_TIMEOUT_S = 90.0
"""Longer than the longest wait that the API grants."""
PAGE = 200
"""The most that the API lists at once."""
IN_PROCESS_URL = "http://localhost"


class Unreachable(ShinsenError):
    """No server answers there: start it, or give another address."""


class NoDataFolder(ShinsenError):
    """Nothing has been published here: give the folder, or publish first."""


class ApiProblem(ShinsenError):
    """The API answered with an RFC 9457 problem."""

    def __init__(self, status: int, body: Mapping[str, Any], retry_after: float | None = None) -> None:
        """Keep the status, the problem's members, and when to come back."""
        detail = str(body.get("detail") or body.get("title") or "no details")
        pointers = [str(item.get("pointer", "")) for item in body.get("errors", []) if isinstance(item, Mapping)]
        where = ", ".join(pointer for pointer in pointers[:3] if pointer)
        super().__init__(f"{detail}" + (f" (at {where})" if where else ""))
        self.status, self.body, self.retry_after = status, body, retry_after


class Connection:
    """Requests with our errors: `Unreachable` and `ApiProblem`."""

    def __init__(self, client: httpx.AsyncClient, where: str, *, in_process: bool) -> None:
        """`where` is for messages."""
        self.client, self.where, self.in_process = client, where, in_process

    async def request(self, method: str, path: str, *, endless: bool = False, **arguments: Any) -> httpx.Response:
        """Send a request; the response is a success. `endless` waits for work without a limit."""
        if endless:
            arguments["timeout"] = httpx.Timeout(None, connect=CONNECT_TIMEOUT_S)
        try:
            response = await self.client.request(method, path, **arguments)
        except httpx.TimeoutException as error:
            raise Unreachable(f"{self.where} did not answer in time ({type(error).__name__})") from error
        except (httpx.TransportError, httpx.InvalidURL) as error:
            raise Unreachable(f"{self.where} does not answer: {error}. Is `shinsen run` running there?") from error
        if response.is_success:
            return response
        raise ApiProblem(response.status_code, _problem(response), _retry_after(response))

    async def get(self, path: str, **arguments: Any) -> Any:
        """GET and return the decoded JSON."""
        return _json(await self.request("GET", path, **arguments), self.where)

    async def post(self, path: str, **arguments: Any) -> Any:
        """POST and return the decoded JSON."""
        return _json(await self.request("POST", path, **arguments), self.where)


@asynccontextmanager
async def connect(
    *, url: str | None = None, data: Path | None = None, groups: str | None = None, create: bool = False
) -> AsyncIterator[Connection]:
    """Connect to `url`, else to the server that runs over the data folder, else open the folder here.

    With the stack as profile there is no folder: it is the server at the settings' host and port.

    Raises NoDataFolder when there is none and `create` is False.
    """
    asker = {} if groups is None else {"x-shinsen-groups": groups}
    headers = httpx.Headers({"accept": "application/json"} | asker, encoding="utf-8")
    if url is not None:
        async with _remote(url, headers) as connection:
            yield connection
        return
    settings = read_settings(data=data)
    if settings.profile == "stack" and data is None:
        async with _remote(f"http://{settings.host}:{settings.port}", headers) as connection:
            yield connection
        return
    served = str(holder_of(settings.data).get("url") or "")
    if served:
        async with _remote(served, headers) as connection:
            yield connection
        return
    if not create and not _has_data(settings.data):
        raise NoDataFolder(
            f"there is no data in {settings.data}: start with `shinsen run` or `shinsen publish`, "
            "or say where with --data or --url"
        )
    async with connect_here(settings, headers) as connection:
        yield connection


@asynccontextmanager
async def connect_here(settings: Settings, headers: httpx.Headers | None = None) -> AsyncIterator[Connection]:
    """Open the embedded runtime with these settings in this process. Raises DataFolderBusy, InvalidConfiguration."""
    # Only now: the runtime and its libraries take a second to import, which a command with a server need not pay.
    from ops.in_process import in_process

    async with in_process(settings) as opened:
        transport = httpx.ASGITransport(app=opened.app)  # type: ignore[arg-type]  # httpx's ASGI types are its own
        async with httpx.AsyncClient(transport=transport, base_url=IN_PROCESS_URL, headers=headers) as client:
            client.timeout = httpx.Timeout(None)
            yield Connection(client, str(settings.data), in_process=True)


async def dead_letters(connection: Connection, *, resolved: bool = False) -> AsyncIterator[dict[str, Any]]:
    """Yield the open dead letters, page by page; the resolved ones too when asked for."""
    query: dict[str, Any] = {"limit": PAGE, "resolved": str(resolved).lower()}
    async for letter in _pages(connection, "/v1/dead-letters", "dead_letters", query):
        yield letter


async def documents(connection: Connection, source: str, collection: str) -> AsyncIterator[dict[str, Any]]:
    """Yield the documents of a collection, in key order."""
    query: dict[str, Any] = {"limit": PAGE, "source": source, "collection": collection}
    async for document in _pages(connection, "/v1/documents", "documents", query):
        yield document


async def _pages(
    connection: Connection, path: str, member: str, query: dict[str, Any]
) -> AsyncIterator[dict[str, Any]]:
    while True:
        page = await connection.get(path, params=query)
        for item in page[member]:
            yield item
        if not page["next"]:
            return
        query["after"] = page["next"]


@asynccontextmanager
async def _remote(url: str, headers: httpx.Headers) -> AsyncIterator[Connection]:
    address = url if "://" in url else f"http://{url}"
    # A proxy of the environment is for other machines.
    loopback = (urlsplit(address).hostname or "") in ("localhost", "127.0.0.1", "::1")
    timeout = httpx.Timeout(READ_TIMEOUT_S, connect=CONNECT_TIMEOUT_S)
    async with httpx.AsyncClient(base_url=address, headers=headers, timeout=timeout, trust_env=not loopback) as client:
        yield Connection(client, address, in_process=False)


def _has_data(folder: Path) -> bool:
    """A folder that holds nothing but a lock was never written to."""
    return folder.is_dir() and any(entry.name != "lock.json" for entry in folder.iterdir())


def _json(response: httpx.Response, where: str) -> Any:
    try:
        return msgspec.json.decode(response.content)
    except msgspec.DecodeError as error:
        raise Unreachable(f"{where} answers, but not as Shinsen does: no JSON from {response.url}") from error


def _problem(response: httpx.Response) -> dict[str, Any]:
    try:
        body = msgspec.json.decode(response.content)
    except msgspec.DecodeError:
        body = None
    if isinstance(body, dict):
        return body
    return {"detail": f"status {response.status_code} from {response.url}", "status": response.status_code}


def _retry_after(response: httpx.Response) -> float | None:
    try:
        return max(0.0, float(response.headers.get("retry-after", "")))
    except ValueError:
        return None
