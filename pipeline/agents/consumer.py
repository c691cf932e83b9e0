"""Faust's consumer, mended where it commits too little (a group hangs) or too much (an event is lost).

Four things about Faust 0.15.3, all in faust/transport/consumer.py, the last with aiokafka 0.14:

- It notes which offsets are missing between two messages unless the earlier one has offset 0 (`gap > 1 and r_offset`).
  After a gap there, as compaction leaves it, the group stays at offset 1: lag for ever, and a rebuild that waits.
- At a rebalance it empties the agents' buffers and seeks back to what is committed. Messages that its other thread had
  fetched before, and that arrive after the seek, are from behind what was emptied: they are handed out, what is
  between is then dropped as read already (`DROPPED MESSAGE ROFF`), and one missing offset right after the committed
  one is taken for a gap. The event of that offset is acknowledged without ever having been handed out.
- A message that is being handed out while this happens is noted as read after the seek, to the same end.
- A partition of which nothing is committed yet stays where it is when all seek back to what is committed.

So what was fetched before a seek is not handed out after it: it is fetched again.
"""

from collections.abc import AsyncIterator
from typing import Any

import structlog
from faust.transport.drivers.aiokafka import Consumer

log = structlog.get_logger(__name__)


class InOrderConsumer(Consumer):
    """Hands out every message after the committed one, in order. For groups that acknowledge in order, as ours do."""

    _seeks = 0
    """Beginnings and ends of seeks to what is committed: what was fetched at another number may leave messages out."""

    async def perform_seek(self) -> None:
        """Seek all partitions to their committed position, those without one to their beginning."""
        self._seeks += 1
        try:
            await super().perform_seek()
            if fresh := {place: 0 for place in self.assignment() if not self._committed_offset.get(place)}:
                await self.seek_wait(fresh)
        finally:
            self._seeks += 1

    async def _getmany(self, active_partitions: set[Any] | None, timeout: float) -> Any:
        seeks = self._seeks
        records = await super()._getmany(active_partitions, timeout)
        if not records or seeks == self._seeks or not self.flow_active:  # inactive: Faust seeks by itself
            return records
        await self._seek_again("fetched")
        return {}

    async def getmany(self, timeout: float) -> AsyncIterator[Any]:
        """Yield messages, until a seek has made those that were fetched with them useless."""
        seeks = None
        async for tp, message in super().getmany(timeout):
            if seeks is None:
                seeks = self._seeks
            if seeks == self._seeks:
                yield tp, message
            if seeks != self._seeks:
                if self.flow_active:
                    await self._seek_again("handed_out")
                return

    async def _seek_again(self, what: str) -> None:
        log.info("seek_again", what=what, assigned=len(self.assignment()))
        await self.perform_seek()

    def _new_offset(self, tp: Any) -> int | None:
        acked = self._acked[tp]
        # In order: what is acknowledged next after offset 0 is what came next, so that nothing lies between.
        if acked and self._committed_offset[tp] == 1 and (first := min(acked)) > 1:
            self._gap[tp].addi(1, first)
        offset: int | None = super()._new_offset(tp)
        return offset
