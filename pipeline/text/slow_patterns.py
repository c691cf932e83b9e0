"""Whether a regular expression of a configuration file explodes on a text, told by what it computes, not by the clock.

On a busy machine a moment may last a second, and a worker that refuses a good pattern does not start again.
"""

import re
from collections.abc import Iterable
from time import thread_time

TOO_SLOW = "takes too long on repeated characters: avoid repeats inside repeats"


def explodes(compiled: re.Pattern[str], texts: Iterable[str], limit_s: float) -> bool:
    """Try texts of growing length; an exponential pattern is over the limit (processor time of one search) long before
    the last."""
    # Twice: other things that the processor did in the first run may count as this thread's.
    return any(_cost(compiled, text) > limit_s and _cost(compiled, text) > limit_s for text in texts)


def _cost(compiled: re.Pattern[str], text: str) -> float:
    started = thread_time()
    compiled.search(text)
    return thread_time() - started
