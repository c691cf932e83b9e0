"""Trying dead letters again, the same on both profiles: records go back to work, raw events back to the door."""

from collections.abc import Awaitable, Callable, Sequence

from pipeline.dead_letters import LETTER_HEADER, RETRY_HEADER
from pipeline.ports.runtime import Submission
from pipeline.ports.state import State
from schemas.change_event import RawEvent
from schemas.outcome import DeadLetter, Outcome
from schemas.record import Record

Work = Callable[[str, Record], Awaitable[None]]
"""Puts a record to work again in the generation named."""
Submit = Callable[[Sequence[RawEvent]], Awaitable[list[Submission]]]


async def retry(
    state: State, live: Callable[[], Awaitable[str]], letters: Sequence[str], work: Work, submit: Submit
) -> dict[str, str]:
    """Return for each id `queued` or why not. See `Runtime.retry`."""
    done: dict[str, str] = {}
    for name in letters:
        letter = await state.dead_letter(name)
        if letter is None:
            done[name] = "unknown: no dead letter has this id; `shinsen dlq list` shows them"
        elif letter.resolved:
            done[name] = "already resolved"
        elif letter.stage in ("map", "apply"):
            done[name] = await _record(state, await live(), letter, work)
        else:
            done[name] = await _raw(letter, submit)
    return done


async def _record(state: State, generation: str, letter: DeadLetter, work: Work) -> str:
    await state.resolve([letter.id], generation)
    record = (await state.records([letter.document])).get(letter.document)
    if record is None or record.position != letter.position:
        ended = Outcome(event=letter.event, document=letter.document, position=letter.position, outcome="superseded")
        await state.announce([ended])
        return "superseded: a newer version of the document stands"
    await work(generation, record)
    return "queued"


async def _raw(letter: DeadLetter, submit: Submit) -> str:
    headers = letter.headers | {RETRY_HEADER: letter.event, LETTER_HEADER: letter.id}
    submission = (await submit([RawEvent(value=letter.payload, headers=headers)]))[0]
    if submission.status == "rejected":
        return f"rejected again ({submission.code}): {submission.reason}"
    return "queued"
