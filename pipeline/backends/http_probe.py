"""A small question to a server over HTTP: does it answer?"""

import httpx

from pipeline.errors import BackendUnavailable


class HttpProbe:
    """Asks one address; keeps its connection."""

    def __init__(self, name: str, url: str, *, form: dict[str, str] | None = None) -> None:
        """Take who is asked, where, and what is posted (None: GET)."""
        self._name, self._url, self._form = name, url, form
        self._http = httpx.AsyncClient(timeout=5.0)

    async def __call__(self) -> None:
        """Raise BackendUnavailable unless the answer is a success."""
        method = "GET" if self._form is None else "POST"
        try:
            response = await self._http.request(method, self._url, data=self._form)
        except (httpx.HTTPError, RuntimeError) as error:
            raise BackendUnavailable(
                f"{self._name} at {self._url}: {str(error) or type(error).__name__}; check that it runs"
            ) from error
        if response.status_code >= 300:
            raise BackendUnavailable(f"{self._name} at {self._url}: status {response.status_code}; look at its log")

    async def close(self) -> None:
        """Close the connection; idempotent."""
        await self._http.aclose()
