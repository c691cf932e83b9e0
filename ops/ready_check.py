"""`python -m ops.ready_check`: whether the API of this machine is ready (the health check of its container)."""

import sys
import urllib.error
import urllib.request

from pipeline.settings import Settings

TIMEOUT_S = 8


def main() -> int:
    """Exit with 0 when it is, else with 1 and what it said."""
    settings = Settings()
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    url = f"http://{host}:{settings.port}/health/ready"
    # A proxy of the environment must not be asked for an address of this machine.
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(url, timeout=TIMEOUT_S) as response:
            return 0 if 200 <= response.status < 300 else 1
    except urllib.error.HTTPError as error:
        print(f"{url}: {error.code} {error.read(2_000).decode('utf-8', 'replace')}", file=sys.stderr)
    except OSError as error:
        print(f"{url}: {error}; see the API's log", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
