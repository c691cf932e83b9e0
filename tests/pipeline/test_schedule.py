"""The order of work: what is taken first, and that finished work never hides a newer change."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pipeline.embedded.schedule import QUEUES, Queue, Schedule, Taken


def names(schedule: Schedule, queue: Queue, limit: int = 10) -> list[str]:
    return [item.document for item in schedule.take(queue, limit)]


def filled(queue: Queue, *documents: str) -> Schedule:
    schedule = Schedule()
    for n, document in enumerate(documents):
        schedule.add(document, queue, f"2025-01-0{n + 1}")
    return schedule


def test_the_oldest_change_first_but_the_newest_document_of_a_backlog() -> None:
    queues: tuple[Queue, ...] = ("live", "text", "relink")
    for queue in queues:
        assert names(filled(queue, "a", "b", "c"), queue) == ["a", "b", "c"]
    assert names(filled("full", "a", "b", "c"), "full") == ["c", "b", "a"]


def test_takes_no_more_than_asked() -> None:
    schedule = filled("live", "a", "b", "c")
    assert names(schedule, "live", 2) == ["a", "b"]
    assert names(schedule, "live", 2) == ["c"]
    assert names(schedule, "live", 2) == []


def test_what_somebody_asked_for_comes_first() -> None:
    schedule = filled("full", "a", "b", "c")
    schedule.add("changed", "live", "2025-01-09")
    schedule.hurry(["a", "unknown"])
    assert names(schedule, "live") == ["a", "changed"]
    assert names(schedule, "full") == ["c", "b"]


def test_moves_to_the_more_urgent_queue_and_never_back() -> None:
    order: tuple[Queue, ...] = ("live", "text", "full", "relink")
    for first in order:
        for second in order:
            schedule = filled(first, "a")
            schedule.add("a", second, "2025-02-01")
            wanted = min(first, second, key=order.index)
            assert names(schedule, wanted) == ["a"]
            assert len(schedule) == 1


def test_finished_work_does_not_hide_a_newer_change() -> None:
    schedule = filled("live", "a")
    (item,) = schedule.take("live", 1)
    schedule.add("a", "live", "2025-02-01")
    schedule.done(item)
    assert len(schedule) == 1
    (newer,) = schedule.take("live", 1)
    schedule.again(item)
    schedule.done(newer)
    assert len(schedule) == 0


def test_done_may_lead_to_another_queue() -> None:
    schedule = filled("text", "a")
    (item,) = schedule.take("text", 1)
    schedule.done(item, then="full")
    assert (schedule.waiting("text"), schedule.waiting("full")) == (0, 1)


def test_failed_work_comes_back_and_counts_its_attempts() -> None:
    schedule = filled("live", "a")
    for attempts in range(3):
        (item,) = schedule.take("live", 1)
        assert item.attempts == attempts
        schedule.again(item)
    schedule.add("a", "live", "2025-02-01")
    assert [item.attempts for item in schedule.take("live", 1)] == [0]


def test_what_was_put_back_and_then_finished_by_another_is_gone() -> None:
    """Two loops may hold one ticket: one puts it back, the other finishes it."""
    schedule = filled("live", "a")
    (item,) = schedule.take("live", 1)
    schedule.again(item)
    schedule.done(item)
    assert (names(schedule, "live"), len(schedule)) == ([], 0)


def test_counts_and_the_oldest_arrival() -> None:
    schedule = filled("live", "a", "b")
    schedule.take("live", 1)
    assert (schedule.waiting("live"), schedule.unfinished("live"), schedule.unfinished("text")) == (1, 2, 0)
    assert schedule.oldest("live", "text") == "2025-01-01"
    assert schedule.oldest("text") == ""
    schedule.add("b", "live", "2024-01-01")
    schedule.add("a", "live", "2025-09-01")
    assert schedule.oldest("live") == "2024-01-01"


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.sampled_from("abcd"), st.sampled_from(QUEUES), st.sampled_from("1234")),
        st.tuples(st.just("take"), st.sampled_from(QUEUES)),
        st.tuples(st.just("done"), st.sampled_from((None, *QUEUES))),
        st.tuples(st.just("again")),
        st.tuples(st.just("hurry"), st.sampled_from("abcd")),
    ),
    max_size=60,
)


@given(steps=STEPS)
def test_counts_and_arrivals_are_those_of_the_documents(steps: list[tuple[Any, ...]]) -> None:
    schedule = Schedule()
    held: list[Taken] = []
    for name, *arguments in steps:
        if name == "add":
            schedule.add(*arguments)
        elif name == "take":
            held += schedule.take(arguments[0], 2)
        elif name == "hurry":
            schedule.hurry(arguments)
        elif held:
            item = held.pop(0)
            schedule.again(item) if name == "again" else schedule.done(item, then=arguments[0])
        for queue in QUEUES:
            own = [work for work in schedule._work.values() if work.queue == queue]
            assert schedule.unfinished(queue) == len(own)
            assert schedule.oldest(queue) == min((work.arrived for work in own), default="")
