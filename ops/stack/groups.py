"""Whether our workers have joined their consumer group, asked of Kafka itself."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

TIMEOUT_S = 5
STABLE = "Stable"


def joined(bootstrap: str, group: str, client: str) -> bool:
    """Whether a member of that client id is in the group, and the group is not just being shared out anew."""
    # In a thread of its own: the caller may be inside an event loop.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, _joined(bootstrap, group, client)).result()


async def _joined(bootstrap: str, group: str, client: str) -> bool:
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
    return any(row[2] == STABLE and any(member[1] == client for member in row[5]) for row in found)
