"""The check of words, which runs on the event loop: quick for any text, and blind to no keyword."""

import contextlib
import time

import pytest

from pipeline.backends.sparql_guard import MAX_BYTES, check_text
from pipeline.errors import InvalidQuery


@pytest.mark.parametrize(
    "piece", ["-", ".", "1.", "a.-", "a", "a:", "?", "<a", "'", '"""', "'\\", "\\", "#", "@a-", "%"]
)
def test_any_text_is_checked_in_no_time(piece: str) -> None:
    text = "SELECT * { " + piece * ((MAX_BYTES - 20) // len(piece))
    started = time.process_time()
    with contextlib.suppress(InvalidQuery):
        check_text(text)
    assert time.process_time() - started < 0.5


@pytest.mark.parametrize(
    "text", ["1.LOAD", "-LOAD", ".insert", "a-DROP.b", "x.SERVICEx", "1.FROM", "-SERVICE:x", "}.ADD"]
)
def test_a_keyword_is_found_within_a_run(text: str) -> None:
    with pytest.raises(InvalidQuery):
        check_text("SELECT * { {" + text)


@pytest.mark.parametrize("text", ["?a-?load", "?s ex:reload 1.5", "1-2", "ex:LOAD", "'LOAD'", "<LOAD>", "loader"])
def test_what_only_looks_like_a_keyword_passes(text: str) -> None:
    check_text("SELECT * { " + text + " }")
