"""What the API is told at start; `pipeline.settings` reads the environment, this does not."""

import msgspec

from schemas.access import EVERYTHING


class ApiOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Limits and trust of one start."""

    loopback: bool = True
    """True when only this machine can reach the port: then the groups header is trusted."""
    anonymous_groups: tuple[str, ...] = (EVERYTHING,)
    """Groups of an asker who says nothing."""
    allowed_hosts: tuple[str, ...] = ()
    """Names accepted in the Host header beside this machine's own."""
    max_event_body: int = 32_000_000
    """Bytes of one `POST /v1/events`."""
    max_events: int = 10_000
    """Events of one `POST /v1/events`."""
    max_body: int = 1_100_000
    """Bytes of any other request: a question with the largest freshness token fits."""
    max_wait_s: float = 60.0
    source_timeout_s: float = 5.0
    """A source that takes longer is left out of the answer, with a warning."""
    sparql_timeout_s: float = 5.0
    sparql_max_bytes: int = 10_000_000
    access_classes_limit: int = 500
    """More access classes than this raise an alarm; nothing is refused."""
    llm: bool = False
    """True when a chat model is configured (no route uses one yet)."""
    version: str = "0.1.0"
