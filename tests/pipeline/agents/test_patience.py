"""How long a stage is patient with one document."""

from collections.abc import Awaitable, Callable, Sequence

import pytest

from pipeline.agents.patience import IN_A_ROW, MAX_ATTEMPTS, MODEL_ATTEMPTS, Patience
from pipeline.errors import BackendUnavailable, InvalidEvent, ModelFailed

Work = Callable[[Sequence[str]], Awaitable[None]]


async def models_work() -> bool:
    return True


async def models_fail() -> bool:
    return False


def failing(error: Exception, *bad: str) -> Work:
    """Work that raises when one of these is among the items."""

    async def work(items: Sequence[str]) -> None:
        if set(items) & set(bad):
            raise error

    return work


async def rounds(patience: Patience, items: Sequence[str], work: Work, most: int = 20) -> tuple[int, dict[str, str]]:
    """Try again as a stage does; return in which round it ended, and the codes of those put aside."""
    for number in range(1, most + 1):
        try:
            aside = await patience.each(items, str, work)
        except BackendUnavailable:
            continue
        return number, {item: error.code for item, error in aside}
    return most, {}


async def test_what_passes_is_not_put_aside() -> None:
    assert await rounds(Patience(models_work), ["a", "b"], failing(ValueError())) == (1, {})


async def test_one_bug_of_one_document_lets_the_others_pass_and_ends() -> None:
    ended = await rounds(Patience(models_work), ["a", "b", "c"], failing(KeyError("x"), "b"))
    assert ended == (MAX_ATTEMPTS, {"b": "internal_error"})
    assert await rounds(Patience(models_work), ["b"], failing(KeyError("x"), "b")) == (
        MAX_ATTEMPTS,
        {"b": "internal_error"},
    )


async def test_when_one_after_the_other_fails_it_is_us() -> None:
    patience = Patience(models_work)
    bad = [f"d{n}" for n in range(IN_A_ROW + 1)]
    for document in bad[:-1]:
        assert (await rounds(patience, [document], failing(KeyError("x"), *bad)))[1] == {document: "internal_error"}
    with pytest.raises(KeyError):
        await rounds(patience, bad[-1:], failing(KeyError("x"), *bad))


async def test_a_text_that_no_model_takes_ends_while_they_take_others() -> None:
    ended = await rounds(Patience(models_work), ["a", "b"], failing(ModelFailed("no"), "a"))
    assert ended == (MODEL_ATTEMPTS, {"a": "model_failed"})
    assert await rounds(Patience(models_fail), ["a", "b"], failing(ModelFailed("no"), "a")) == (20, {})


async def test_a_store_that_is_down_is_waited_for_whatever_passed_before() -> None:
    patience = Patience(models_work)
    items = [f"d{n}" for n in range(10)]
    assert await rounds(patience, items, failing(ValueError())) == (1, {})
    assert await rounds(patience, items, failing(BackendUnavailable("down"), *items), 50) == (50, {})
    assert await rounds(patience, items[:1], failing(BackendUnavailable("down"), *items), 50) == (50, {})


async def test_what_a_store_refuses_again_and_again_while_it_takes_others_ends() -> None:
    number, codes = await rounds(Patience(models_work), ["a", "b", "c"], failing(BackendUnavailable("422"), "b"), 50)
    assert codes == {"b": "store_refused"}
    assert number >= MAX_ATTEMPTS


async def test_what_a_store_says_it_never_takes_ends_at_once_even_alone() -> None:
    refused = InvalidEvent("store_refused", "too long")
    for items in (["a", "b", "c"], ["b"]):
        assert await rounds(Patience(models_work), items, failing(refused, "b")) == (1, {"b": "store_refused"})
    patience = Patience(models_work)
    for n in range(2 * IN_A_ROW):  # of a publisher that sends nothing else; that is not us
        assert await rounds(patience, [f"{n}"], failing(refused, f"{n}")) == (1, {f"{n}": "store_refused"})


async def test_in_order_nothing_is_done_while_something_before_is_to_be_tried_again() -> None:
    done: list[str] = []

    async def work(items: Sequence[str]) -> None:
        if "b" in items:
            raise KeyError("b")
        done.extend(items)

    patience = Patience(models_work, in_order=True)
    for _ in range(MAX_ATTEMPTS - 1):
        with pytest.raises(BackendUnavailable):
            await patience.each(["a", "b", "c"], str, work)
    assert set(done) == {"a"}
    assert [item for item, _ in await patience.each(["a", "b", "c"], str, work)] == ["b"]
    assert done[-1] == "c"
