"""A long seeded stream of events, nearly in order, with repetitions: the same in every process."""

import random

from schemas.change_event import RawEvent
from tests.differential.events import ALIASES, GROUPS, KINDS, NOTES, SENTENCES, Change, history


def changes(seed: int, length: int) -> list[Change]:
    """What happens in the sources."""
    chance = random.Random(seed)
    return [_change(chance) for _ in range(length)]


def _change(chance: random.Random) -> Change:
    machine = chance.choice(("F-17", "K-08", "P-03", "Q-11"))
    report = f"r{chance.randrange(25)}"
    match chance.choices(("machine", "report", "note", "gone", "bad", "truncate"), (20, 45, 15, 12, 7, 1))[0]:
        case "machine":
            content = (
                chance.choice(ALIASES),
                chance.choice(KINDS),
                chance.choice(GROUPS),
                chance.choice(("1.50", "2")),
            )
            return Change("machine", machine, content, tie=chance.random() < 0.1)
        case "report":
            sentences = tuple(chance.choices(SENTENCES, k=chance.randint(1, 5)))
            return Change("report", report, (sentences, chance.choice(GROUPS), chance.choice(("田中", "鈴木"))))
        case "note":
            return Change("note", f"n{chance.randrange(8)}", (chance.choice(NOTES),))
        case "gone":
            kind, key = chance.choice((("machine_gone", machine), ("report_gone", report), ("note_gone", "n1")))
            return Change(kind, key)
        case "bad":
            garbage = Change("garbage", "", (b"{%d" % chance.randrange(9),))
            return chance.choice((Change("machine_bad", machine), Change("report_bad", report), garbage))
    return Change("truncate")


def arriving(seed: int, events: list[RawEvent]) -> list[RawEvent]:
    """The order of arrival: each event up to 20 places late, one in ten twice."""
    chance = random.Random(seed)
    places = [(n + chance.uniform(0, 20), event) for n, event in enumerate(events)]
    places += [(n + chance.uniform(0, 60), event) for n, event in enumerate(events) if chance.random() < 0.1]
    return [event for _, event in sorted(places, key=lambda place: place[0])]


def stream(seed: int, length: int) -> tuple[list[RawEvent], list[RawEvent]]:
    """Return the events in order of their positions, and as they arrive."""
    events = history(changes(seed, length))
    return events, arriving(seed + 1, events)
