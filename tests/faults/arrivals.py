"""Events as messages of the source topic, and their trickling in beside everything that goes wrong."""

import asyncio
import json
import random
from collections.abc import Sequence
from typing import Any

from aiokafka import AIOKafkaProducer

from schemas.change_event import RawEvent
from tests.faults.stream import stream

Keyed = tuple[bytes | None, bytes]
"""Key and value."""
PRODUCER_TIMEOUT_MS = 180_000
"""Longer than any broker stays away here; what is sent twice after a time-out would be two events."""


def messages(events: Sequence[RawEvent]) -> list[Keyed]:
    """Key events as their sources would. Garbage is sent once: here its place makes the event, embedded its bytes."""
    found: list[Keyed] = []
    garbage: set[bytes] = set()
    for event in events:
        value = event.value or b""
        body = _body(value)
        if body is None:
            if value in garbage:
                continue
            garbage.add(value)
        found.append((_key(body), value))
    return found


def _body(value: bytes) -> dict[str, Any] | None:
    try:
        body: dict[str, Any] = json.loads(value)
    except ValueError:
        return None
    return body


def _key(body: dict[str, Any] | None) -> bytes | None:
    if body is None:
        return b"dms/reports/r1"  # among the good ones of its partition
    if "specversion" in body:
        return f"memo/notes/{body['subject']}".encode()
    if "key" in body:
        return f"{body['source']}/{body['collection']}/{body['key']}".encode()
    row = body["after"] or body["before"]
    return json.dumps({"equipment_no": row["equipment_no"]}).encode() if row else None


def seeded(seed: int, length: int) -> tuple[list[RawEvent], list[Keyed]]:
    """Return the events of a seed in the order of their positions, and the messages as they arrive."""
    ordered, arriving = stream(seed, length)
    return ordered, messages(arriving)


class Trickle:
    """Sends messages at seeded moments, up to a target that the test raises."""

    def __init__(self, kafka: str, topic: str, waiting: Sequence[Keyed], seed: int, pause_s: float = 0.4) -> None:
        self._kafka, self._topic, self._waiting = kafka, topic, waiting
        self._chance, self._pause_s = random.Random(seed), pause_s
        self.target = self.sent = 0

    async def run(self) -> None:
        """Go on until all are sent, through restarts of the broker."""
        async with AIOKafkaProducer(
            bootstrap_servers=self._kafka, acks="all", enable_idempotence=True, request_timeout_ms=PRODUCER_TIMEOUT_MS
        ) as producer:
            for key, value in self._waiting:
                while self.sent >= self.target:  # noqa: ASYNC110 - a counter
                    await asyncio.sleep(0.05)
                await asyncio.sleep(self._chance.uniform(0, self._pause_s))
                await producer.send_and_wait(self._topic, value, key=key)
                self.sent += 1
