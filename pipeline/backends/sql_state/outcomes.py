"""Outcomes and dead letters."""

from collections.abc import Sequence

import msgspec

from pipeline.backends.sql_state import manifests, records
from pipeline.backends.sql_state.transaction import Row, Transaction, marks, sliced, value_rows
from schemas.outcome import DeadLetter, Outcome, OutcomeName

COLUMNS = "id, event, code, reason, document, position, stage, payload, headers, at, attempts, resolved"
_ALL = f"{COLUMNS}, coalesce((SELECT g.generation FROM letter_generations g WHERE g.letter = id), '')"  # noqa: S608
_OF_LIVE = """NOT EXISTS (SELECT 1 FROM letter_generations g WHERE g.letter = id
    AND g.generation NOT IN (SELECT name FROM generations WHERE state = 'live'))"""
"""Letters of the live generation, and of none."""
_OF_ONE = "coalesce((SELECT g.generation FROM letter_generations g WHERE g.letter = id), ?) = ?"
"""Letters of a generation, and (with it twice) of none."""


def announce(tx: Transaction, outcomes: Sequence[Outcome]) -> None:
    """Record outcomes; only a dead letter may still become something else."""
    # In order of the event, and below of the document, so that two announcers do not dead-lock.
    outcomes = sorted((outcome for outcome in outcomes if outcome.event), key=lambda o: o.event)
    ends: dict[str, Outcome] = {}
    for outcome in outcomes:  # one statement cannot set a row twice, so what the rule says is done here first
        if outcome.event not in ends or ends[outcome.event].outcome == "dead_letter":
            ends[outcome.event] = outcome
    for part in sliced(list(ends.values())):
        tx.execute(
            f"""INSERT INTO outcomes (event, document, position, outcome) VALUES {value_rows(len(part), 4)}
                ON CONFLICT (event) DO UPDATE SET outcome = excluded.outcome
                WHERE outcomes.outcome = 'dead_letter'""",  # noqa: S608
            [value for o in part for value in (o.event, o.document, o.position, o.outcome)],
        )
    by_document: dict[str, set[str]] = {}
    for outcome in outcomes:
        by_document.setdefault(outcome.document, set()).add(outcome.event)
    records.forget_origins(tx, by_document)


def get(tx: Transaction, events: Sequence[str]) -> dict[str, OutcomeName]:
    """Return the outcomes known."""
    found: dict[str, OutcomeName] = {}
    for part in sliced(events):
        rows = tx.execute(f"SELECT event, outcome FROM outcomes WHERE event IN ({marks(len(part))})", part)  # noqa: S608
        found.update(dict(rows))
    return found


def bury(tx: Transaction, letters: Sequence[DeadLetter]) -> None:
    """Keep dead letters; announce those of the live generation, and of none."""
    live = {"", *(name for (name,) in tx.execute("SELECT name FROM generations WHERE state = 'live'"))}
    announce(tx, [outcome for letter in letters for outcome in _bury(tx, letter) if letter.generation in live])


def _bury(tx: Transaction, letter: DeadLetter) -> list[Outcome]:
    """Keep a letter; return what ends with it."""
    if letter.stage in ("map", "apply") and _replaced(tx, letter):
        return [_superseded(letter.event, letter.document, letter.position)]
    if letter.generation:
        tx.execute(
            "INSERT INTO letter_generations (letter, generation) VALUES (?, ?) ON CONFLICT DO NOTHING",
            (letter.id, letter.generation),
        )
    rows = tx.execute(
        f"""INSERT INTO dead_letters ({COLUMNS}) VALUES ({marks(12)})
           ON CONFLICT (id) DO UPDATE SET attempts = dead_letters.attempts + 1, resolved = 0,
               reason = excluded.reason,
               event = CASE dead_letters.event WHEN '' THEN excluded.event ELSE dead_letters.event END
           RETURNING event""",  # noqa: S608
        (
            letter.id,
            letter.event or _known_event(tx, letter),
            letter.code,
            letter.reason,
            letter.document,
            letter.position,
            letter.stage,
            letter.payload,
            msgspec.json.encode(letter.headers).decode(),
            letter.at,
            letter.attempts,
            int(letter.resolved),
        ),
    )
    ended = [
        Outcome(event=event, document=letter.document, position=letter.position, outcome="dead_letter")
        for event in dict.fromkeys((rows[0][0], letter.event))
    ]
    return [*ended, *_resolved_below(tx, letter)] if letter.stage in ("map", "apply") else ended


def _known_event(tx: Transaction, letter: DeadLetter) -> str:
    """Return the event that another generation's letter of this version has: a rebuild is told of none."""
    if not letter.generation:
        return ""
    rows = tx.execute(
        "SELECT min(event) FROM dead_letters WHERE document = ? AND position = ? AND event <> ''"
        " AND stage IN ('map', 'apply')",
        (letter.document, letter.position),
    )
    return str(rows[0][0] or "")


def _replaced(tx: Transaction, letter: DeadLetter) -> bool:
    newer = "SELECT 1 FROM records WHERE document = ? AND position > ?"
    return bool(tx.execute(newer, (letter.document, letter.position)))


def _resolved_below(tx: Transaction, letter: DeadLetter) -> list[Outcome]:
    rows = tx.execute(
        "UPDATE dead_letters SET resolved = 1 WHERE document = ? AND position < ? AND resolved = 0"  # noqa: S608
        f" AND stage IN ('map', 'apply') AND {_OF_ONE} RETURNING event, position",
        (letter.document, letter.position, letter.generation, letter.generation),
    )
    return [_superseded(event, letter.document, position) for event, position in rows]


def _superseded(event: str, document: str, position: str) -> Outcome:
    return Outcome(event=event, document=document, position=position, outcome="superseded")


def _letter(row: Row) -> DeadLetter:
    names = [*COLUMNS.split(", "), "generation"]
    values = dict(zip(names, row, strict=True))
    values["headers"] = msgspec.json.decode(values["headers"])
    values["payload"] = bytes(values["payload"])
    values["resolved"] = bool(values["resolved"])
    return DeadLetter(**values)


def drop(tx: Transaction, generation: str) -> None:
    """Remove the letters of a generation."""
    tx.execute(
        "DELETE FROM dead_letters WHERE id IN (SELECT letter FROM letter_generations WHERE generation = ?)",
        (generation,),
    )
    tx.execute("DELETE FROM letter_generations WHERE generation = ?", (generation,))


def dead_letters(tx: Transaction, after: str, limit: int, resolved: bool) -> list[DeadLetter]:
    """Return letters in order of their id."""
    rows = tx.execute(
        f"SELECT {_ALL} FROM dead_letters WHERE id > ? AND resolved = ? AND {_OF_LIVE} ORDER BY id LIMIT ?",  # noqa: S608
        (after, int(resolved), limit),
    )
    return [_letter(row) for row in rows]


def dead_letter(tx: Transaction, letter: str) -> DeadLetter | None:
    """Return one."""
    rows = tx.execute(f"SELECT {_ALL} FROM dead_letters WHERE id = ?", (letter,))  # noqa: S608
    return _letter(rows[0]) if rows else None


def dead_positions(tx: Transaction, documents: Sequence[str]) -> dict[str, list[DeadLetter]]:
    """Return the unresolved letters of documents, in what is live."""
    found: dict[str, list[DeadLetter]] = {}
    for part in sliced(documents):
        rows = tx.execute(
            f"SELECT {_ALL} FROM dead_letters WHERE resolved = 0 AND {_OF_LIVE}"  # noqa: S608
            f" AND document IN ({marks(len(part))}) ORDER BY id",
            part,
        )
        for row in rows:
            letter = _letter(row)
            found.setdefault(letter.document, []).append(letter)
    return found


def resolve(tx: Transaction, letters: Sequence[str], generation: str) -> None:
    """Mark letters resolved; with a generation, let their records be tried again."""
    for letter in letters:
        rows = tx.execute(
            "UPDATE dead_letters SET resolved = 1 WHERE id = ? RETURNING document, position, event", (letter,)
        )
        if rows and generation and rows[0][0]:
            document, position, event = rows[0]
            manifests.mark_relinks(tx, generation, [document])
            records.give_back_origin(tx, document, position, event)


def outlived(tx: Transaction, done: Sequence[tuple[str, str]], generation: str = "") -> None:
    """Resolve letters of records that an applied version has replaced or mended in a generation."""
    having = _with_open_letters(tx, [document for document, _ in done])
    for document, position in sorted(done):
        if document not in having:
            continue
        rows = tx.execute(
            "UPDATE dead_letters SET resolved = 1 WHERE document = ? AND position <= ? AND resolved = 0"  # noqa: S608
            f" AND stage IN ('map', 'apply') AND {_OF_ONE} RETURNING event, position, id",
            (document, position, generation, generation),
        )
        ended: list[Outcome] = [
            Outcome(event=e, document=document, position=p, outcome="applied" if p == position else "superseded")
            for e, p, letter in rows
            if _ends(tx, letter)
        ]
        announce(tx, ended)


def _ends(tx: Transaction, letter: str) -> bool:
    """Whether what becomes of a letter ends its event: those of a generation that is not live say nothing."""
    return bool(tx.execute(f"SELECT 1 FROM dead_letters WHERE id = ? AND {_OF_LIVE}", (letter,)))  # noqa: S608


def _with_open_letters(tx: Transaction, documents: Sequence[str]) -> set[str]:
    found: set[str] = set()
    for part in sliced(documents):
        rows = tx.execute(
            f"SELECT document FROM dead_letters WHERE resolved = 0 AND document IN ({marks(len(part))})",  # noqa: S608
            part,
        )
        found.update(document for (document,) in rows)
    return found


def counts(tx: Transaction) -> dict[str, int]:
    """Count outcomes and open dead letters."""
    found = dict.fromkeys((f"outcome.{o}" for o in ("applied", "duplicate", "superseded", "dead_letter")), 0)
    for outcome, number in tx.execute("SELECT outcome, count(*) FROM outcomes GROUP BY outcome"):
        found[f"outcome.{outcome}"] = number
    open_ones = f"SELECT count(*) FROM dead_letters WHERE resolved = 0 AND {_OF_LIVE}"  # noqa: S608
    found["dead_letters"] = int(tx.execute(open_ones)[0][0])
    return found
