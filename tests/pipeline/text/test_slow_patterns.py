"""A pattern is refused for what it computes, not for what else the machine does."""

import re
import time
from typing import Any, cast

from pipeline.text.slow_patterns import explodes


class Waiting:
    """A pattern on a machine that is busy with other things."""

    def search(self, _: str) -> None:
        time.sleep(0.12)


def test_a_pattern_that_waited_for_the_processor_is_not_refused() -> None:
    assert not explodes(cast(Any, Waiting()), ["aaaa"], 0.05)


def test_a_pattern_that_explodes_is_refused() -> None:
    assert explodes(re.compile("(a+)+$"), ("a" * length + "!" for length in range(8, 40)), 0.05)
