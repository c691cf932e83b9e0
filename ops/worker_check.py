"""`python -m ops.worker_check NAME`: whether the worker of that name (SHINSEN_WORKER_NAME) is in its group."""

import asyncio
import sys
from concurrent.futures import ThreadPoolExecutor

from pipeline.settings import Settings
from schemas.topics import reconcile_group, worker_of

TIMEOUT_S = 5
STABLE = "Stable"


def joined(bootstrap: str, group: str, client: str) -> bool:
    """Whether a member of that client id is in the group, and the group is not just being shared out anew."""
    # In a thread of its own: the caller may be inside an event loop.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, _joined(bootstrap, group, client)).result()


async def _joined(bootstrap: str, group: str, client: str) -> bool:
    # Only now: whoever starts servers only need not have the Kafka client.
    from aiokafka.admin import AIOKafkaAdminClient
    from aiokafka.errors import KafkaError

    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap, request_timeout_ms=TIMEOUT_S * 1000)
    try:
        async with asyncio.timeout(TIMEOUT_S):
            await admin.start()
            answers = await admin.describe_consumer_groups([group])
    except (KafkaError, OSError, TimeoutError):
        return False
    finally:
        await admin.close()
    found = [row for answer in answers for row in answer.groups]
    # (error, name, state, protocol type, protocol, members), a member being (id, client id, ...).
    return any(row[2] == STABLE and any(worker_of(member[1]) == client for member in row[5]) for row in found)


def main() -> int:
    """Exit with 0 when the worker is a member, else with 1."""
    settings = Settings()
    name = sys.argv[1] if len(sys.argv) > 1 else settings.worker_name
    group = reconcile_group(settings.topic_prefix)
    if joined(settings.kafka, group, name):
        return 0
    print(f"no worker {name!r} in the group {group}: see the worker's log", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
