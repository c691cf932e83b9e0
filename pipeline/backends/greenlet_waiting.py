"""Lets synchronous code wait for the event loop: it runs in a greenlet; each wait switches back to the coroutine."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, cast

from greenlet import getcurrent, greenlet

T = TypeVar("T")


async def run_waiting(work: Callable[[], T]) -> T:
    """Run `work`, which may call `wait`, and return its result. Cancelling this raises CancelledError inside `work`."""
    child = greenlet(work)
    child.gr_context = getcurrent().gr_context
    answer: Any = child.switch()
    while not child.dead:
        try:
            value = await answer
        except BaseException as error:  # noqa: BLE001  # it is the work's to catch, cancellation too
            answer = child.throw(type(error), error, error.__traceback__)
        else:
            answer = child.switch(value)
    return cast(T, answer)


def wait(awaitable: Awaitable[T]) -> T:
    """Return what `awaitable` gives, from inside `run_waiting`; everything else goes on meanwhile."""
    parent = getcurrent().parent
    if parent is None:
        raise RuntimeError("wait() outside run_waiting(); nothing awaits for it")
    return cast(T, parent.switch(awaitable))
