"""One HTTP request for health checks."""

import urllib.error
import urllib.request

# A proxy of the environment must not be asked for an address of this machine.
_direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
TIMEOUT_S = 3.0


def answers(url: str, *, body: str | None = None, content_type: str = "text/plain") -> bool:
    """Whether the server answers with a status of 200 to 299."""
    data = None if body is None else body.encode()
    headers = {} if body is None else {"Content-Type": content_type}
    request = urllib.request.Request(url, data=data, headers=headers)  # noqa: S310 - our own addresses only
    try:
        with _direct.open(request, timeout=TIMEOUT_S) as response:
            return 200 <= int(response.status) < 300
    except (urllib.error.URLError, OSError, ValueError):
        return False
