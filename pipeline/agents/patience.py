"""How long a stage is patient with one document: what keeps failing while others pass is put aside for a person."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import structlog

from pipeline.errors import BackendUnavailable, InvalidEvent, ModelFailed

log = structlog.get_logger(__name__)

T = TypeVar("T")

MODEL_ATTEMPTS = 2
"""After so many failures of the models on one document, it is compared with a text that they can take."""
MAX_ATTEMPTS = 5
"""After so many unexpected failures a document is put aside."""
IN_A_ROW = 3
"""So many documents put aside with none that passed in between: then it is us, and the process ends."""


class Patience:
    """Counts failures by document, for one stage of one process."""

    def __init__(self, models_work: Callable[[], Awaitable[bool]], *, in_order: bool = False) -> None:
        """`in_order`: nothing is done while something before it is still to be tried again."""
        self._models_work, self._in_order = models_work, in_order
        self._failures: dict[str, int] = {}
        self._down: dict[str, int] = {}
        self._in_a_row = 0

    async def each(
        self, items: Sequence[T], name: Callable[[T], str], work: Callable[[Sequence[T]], Awaitable[None]]
    ) -> list[tuple[T, InvalidEvent]]:
        """Do work on all items, one by one where that fails; return those to put aside, with the reason.

        Raises BackendUnavailable when a store is down, or some items are to be tried again: then all are done again.
        """
        if len(items) == 1:
            return await self._one_by_one(items, name, work)
        try:
            await work(items)
        except ModelFailed:
            if not await self._models_work():
                raise
        except BackendUnavailable:
            if not self._refused(name(items[0]), len(items)):
                raise
        except Exception:  # one document's bug must not stop the others
            log.exception("batch_failed", documents=len(items))
        else:
            self._passed([name(item) for item in items])
            return []
        return await self._one_by_one(items, name, work)

    async def _one_by_one(
        self, items: Sequence[T], name: Callable[[T], str], work: Callable[[Sequence[T]], Awaitable[None]]
    ) -> list[tuple[T, InvalidEvent]]:
        aside: list[tuple[T, InvalidEvent]] = []
        refused: list[tuple[T, Exception]] = []
        again: Exception | None = None
        for item in items:
            try:
                await work([item])
                self._passed([name(item)])
            except Exception as error:  # see above
                if _is_down(error) and (len(items) == 1 or self._in_order):
                    raise
                if _is_down(error):
                    refused.append((item, error))
                    if len(refused) >= IN_A_ROW and len(refused) + len(aside) == items.index(item) + 1:
                        raise  # it takes nothing
                    continue
                works = isinstance(error, ModelFailed) and await self._models_work()
                verdict = self._verdict(name(item), error, works)
                again = error if verdict is None else again
                aside += [(item, verdict)] if verdict is not None else []
                if again is not None and self._in_order:
                    break
        others = len(refused) < len(items)
        for item, refusal in refused:
            verdict = self._refusal(name(item), refusal) if others else None
            again = refusal if verdict is None else again
            aside += [(item, verdict)] if verdict is not None else []
        if again is not None:
            raise BackendUnavailable(f"{type(again).__name__}: {again}; it is tried again") from again
        return aside

    def _passed(self, documents: Sequence[str]) -> None:
        self._in_a_row = 0
        for document in documents:
            self._failures.pop(document, None)
            self._down.pop(document, None)

    def _refused(self, first: str, number: int) -> bool:
        """Say whether a store that is said to be down may only refuse one document of a batch, as it came so often."""
        failures = self._down[first] = self._down.get(first, 0) + 1
        return number > 1 and failures >= MAX_ATTEMPTS

    def _refusal(self, document: str, error: Exception) -> InvalidEvent | None:
        """Judge a document that a store did not take in a round in which it took others."""
        failures = self._failures[document] = self._failures.get(document, 0) + 1
        if failures < MAX_ATTEMPTS:
            return None
        return InvalidEvent("store_refused", f"{document}: a store refuses it, and takes others: {error}; see its log")

    def _verdict(self, document: str, error: Exception, works: bool) -> InvalidEvent | None:
        if isinstance(error, InvalidEvent):  # a store said that it never takes this, however often it is tried
            log.warning("document_refused", document=document, reason=str(error))
            return error
        failures = self._failures[document] = self._failures.get(document, 0) + 1
        if isinstance(error, ModelFailed):
            if failures < MODEL_ATTEMPTS or not works:
                return None
            reason = f"{document}: the models fail on this text and on no other: {error}; mend or shorten it"
            return InvalidEvent("model_failed", reason)
        log.error("document_failed", document=document, failures=failures, exc_info=error)
        if failures < MAX_ATTEMPTS:
            return None
        if self._in_a_row >= IN_A_ROW:
            raise error
        self._in_a_row += 1
        reason = f"{document}: failed {failures} times: {type(error).__name__}: {error}; see the log"
        return InvalidEvent("internal_error", reason)


def _is_down(error: Exception) -> bool:
    return isinstance(error, BackendUnavailable) and not isinstance(error, ModelFailed)
