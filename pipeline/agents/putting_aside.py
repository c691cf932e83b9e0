"""Putting events aside: on the topic of dead letters, with how often by now, and in the state store."""

from collections.abc import Sequence

import msgspec

from pipeline.agents.outbox import Outbox
from pipeline.ports.state import State
from schemas.change_event import RawEvent
from schemas.outcome import DeadLetter


async def put_aside(state: State, outbox: Outbox, letters: Sequence[tuple[DeadLetter, RawEvent | None]]) -> None:
    """Send and keep letters, in this order: what is sent twice has one id, what is not sent would be silent.

    Raises BackendUnavailable when the topic or the store does not take them; doing it again is safe.
    """
    counted: list[tuple[DeadLetter, RawEvent | None]] = []
    for letter, raw in letters:
        before = await state.dead_letter(letter.id)
        attempts = before.attempts + 1 if before is not None else letter.attempts
        counted.append((msgspec.structs.replace(letter, attempts=attempts), raw))
    await outbox.dead_letters(counted)
    await state.bury([letter for letter, _ in letters])  # which counts by itself
