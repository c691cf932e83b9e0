"""What may happen in the sources, and how it may arrive."""

from typing import NamedTuple

from hypothesis import strategies as st

from tests.differential.events import ALIASES, GROUPS, KINDS, MACHINES, NOTES, SENTENCES, Change

acls = st.sampled_from(GROUPS)
ties = st.sampled_from((False, False, False, True))
machines = st.sampled_from(MACHINES)
reports = st.sampled_from(("r1", "r2", "r3"))
notes = st.sampled_from(("n1", "n1/2"))

machine = st.builds(
    Change,
    st.just("machine"),
    machines,
    st.tuples(st.sampled_from(ALIASES), st.sampled_from(KINDS), acls, st.sampled_from(("1.50", "980000.00"))),
    ties,
)
part = st.builds(
    Change,
    st.just("machine_part"),
    machines,
    st.tuples(st.sampled_from(ALIASES), st.sampled_from(KINDS), acls, st.sampled_from(("1.50", "980000.00"))),
    ties,
)
report = st.builds(
    Change,
    st.just("report"),
    reports,
    st.tuples(
        st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=4).map(tuple),
        acls,
        st.sampled_from(("田中", "鈴木")),
    ),
    ties,
)
others = st.one_of(
    st.builds(Change, st.just("machine_gone"), machines, st.just(()), ties),
    st.builds(Change, st.just("machine_bad"), machines, st.just(()), ties),
    st.builds(Change, st.just("report_gone"), reports, st.just(()), ties),
    st.builds(Change, st.just("report_bad"), reports, st.just(()), ties),
    st.builds(Change, st.just("note"), notes, st.tuples(st.sampled_from(NOTES)), ties),
    st.builds(Change, st.just("note_gone"), notes, st.just(()), ties),
    st.just(Change("truncate")),
    st.sampled_from((b"{x", b"[]", b"\xff", b"a" * 5000)).map(lambda value: Change("garbage", "", (value,))),
)
changes = st.one_of(machine, report, machine, report, part, others)
histories = st.lists(changes, min_size=2, max_size=12)


class Arrival(NamedTuple):
    """How the events of a history reach the second run."""

    order: list[int]
    """Indexes into the history; some twice."""
    batches: list[int]
    """Sizes of the batches, the last one takes the rest."""
    restart_after: int
    """Batches after which the process ends, not waiting for work under way; 0: never."""
    wait: bool
    """Wait for quiet after each batch."""


@st.composite
def arrivals(draw: st.DrawFn, length: int) -> Arrival:
    """Any order, any duplication, any batching."""
    order = list(draw(st.permutations(range(length))))
    for again in draw(st.lists(st.integers(0, length - 1), max_size=3)):
        order.insert(draw(st.integers(0, len(order))), again)
    batches = draw(st.lists(st.integers(1, 5), max_size=5))
    return Arrival(order, batches, draw(st.integers(0, 3)), draw(st.booleans()))


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[Change], Arrival]:
    """A history and how it arrives."""
    happened = draw(histories)
    return happened, draw(arrivals(len(happened)))


@st.composite
def late_ledgers(draw: st.DrawFn) -> tuple[list[Change], Arrival]:
    """The ledger changes an alias or loses its entry, and arrives after all that mentions it, or in reverse."""
    mentioning = draw(st.lists(st.one_of(report, report, others), min_size=1, max_size=5))
    ledger = draw(st.lists(machine, min_size=1, max_size=3))
    last = draw(
        st.sampled_from(
            ((), (Change("machine_gone", "F-17"),), (Change("truncate"),), (Change("machine_bad", "F-17"),))
        )
    )
    happened = draw(st.permutations([*mentioning, *ledger])) + list(last)
    is_ledger = [
        n for n, change in enumerate(happened) if change.kind.startswith("machine") or change.kind == "truncate"
    ]
    rest = [n for n in range(len(happened)) if n not in is_ledger]
    order = rest + (is_ledger if draw(st.booleans()) else is_ledger[::-1])
    return happened, Arrival(order, draw(st.lists(st.integers(1, 3), max_size=8)), draw(st.integers(0, 2)), True)
