"""Which epoch an event belongs to, and when a source seems to have gone backwards."""

import pytest

from pipeline.ports.sources import EpochStart, SourceHead
from pipeline.sources.epochs import SourceEpochs, place_of, went_backwards


@pytest.mark.parametrize(
    ("event", "place"),
    [
        ("shinsen.events-3-17", ("shinsen.events-3", 17)),
        ("erp.public.t-2024-0-5.1", ("erp.public.t-2024-0", 5)),
        ("log:17", ("log", 17)),
        ("log:17.1", ("log", 17)),
        ("refused:ab-12", None),
        ("", None),
    ],
)
def test_an_events_id_says_where_it_lies(event: str, place: tuple[str, int] | None) -> None:
    assert place_of(event) == place


def start(epoch: int, source: str = "erp", **starts: int) -> EpochStart:
    named = {name.replace("_", "-"): offset for name, offset in starts.items()}
    return EpochStart(source=source, epoch=epoch, starts=named, at="2025-07-08")


def test_what_lies_before_an_epochs_start_is_older() -> None:
    epochs = SourceEpochs([start(2, t_0=20), start(1, t_0=10, t_1=5), start(1, "crm")])
    found = {event: epochs.of(event).get("erp", 0) for event in ("t-0-9", "t-0-10", "t-0-19", "t-0-20", "t-1-4")}
    assert found == {"t-0-9": 0, "t-0-10": 1, "t-0-19": 1, "t-0-20": 2, "t-1-4": 2}, "t-1 had nothing at the second"
    assert epochs.of("t-9-0") == {"crm": 1, "erp": 2}, "a partition that came later"
    assert epochs.of("who knows") == epochs.newest() == {"crm": 1, "erp": 2}
    assert SourceEpochs([]).of("t-0-1") == {}


def head(recent: str, place: str = "t-0", source: str = "erp") -> SourceHead:
    return SourceHead(source=source, place=place, head="", version="", at="", recent=recent)


@pytest.mark.parametrize("recent", ["", "x" * 9, "." * 20, "x." * 10, "." * 5 + "x" * 15])
def test_no_alarm(recent: str) -> None:
    assert went_backwards([head(recent)]) == []


def test_quiet_partitions_do_not_hide_one_that_went_backwards() -> None:
    (warning,) = went_backwards([head("." * 20, f"t-{n}") for n in range(9)] + [head("...." + "x" * 16, "t-9")])
    assert "16 of the last 20 events of source erp" in warning
