"""A gap right after the first message of a partition, as compaction leaves it, does not stop Faust's commits.

Faust 0.15.3 notes which offsets are missing between two messages unless the earlier one has offset 0
(`gap > 1 and r_offset` in faust/transport/consumer.py). The group then stays at offset 1 until the worker starts anew:
lag for ever, and a rebuild that waits for ever.
"""

from typing import Any

from faust.transport.drivers.aiokafka import Consumer


class GapConsumer(Consumer):
    """Faust's consumer, knowing that gap. Holds for groups that acknowledge in order, as ours do."""

    def _new_offset(self, tp: Any) -> int | None:
        acked = self._acked[tp]
        # In order: what is acknowledged next after offset 0 is what came next, so that nothing lies between.
        if acked and self._committed_offset[tp] == 1 and (first := min(acked)) > 1:
            self._gap[tp].addi(1, first)
        offset: int | None = super()._new_offset(tp)
        return offset
