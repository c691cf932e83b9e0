"""The publisher against a scripted server: back-pressure, limits, refusals, dead letters, lost connections."""

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from ops import publisher as module
from ops.connection import ApiProblem, Connection, Unreachable
from ops.publisher import Publisher
from pipeline.errors import NotFresh
from schemas.change_event import NativeEvent, RawEvent

Handler = Callable[[httpx.Request], httpx.Response]


class Script:
    """A server: scripted answers first, then it accepts everything but lines that hold `bad`."""

    def __init__(self, *answers: httpx.Response | Exception, largest: int = 1 << 30) -> None:
        self.answers, self.largest = list(answers), largest
        self.batches: list[list[str]] = []
        self.queries: list[dict[str, str]] = []
        self.states: dict[str, list[dict[str, Any]]] = {}

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.url.path == "/v1/freshness":
            states = self.states.get(request.url.params["token"], [{"satisfied": True, "outcome": ""}])
            return httpx.Response(200, json={"token": states.pop(0) if len(states) > 1 else states[0]})
        if self.answers:
            answer = self.answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer
        if len(request.content) > self.largest:
            return httpx.Response(413, json={"status": 413, "detail": "too large"})
        lines = request.content.decode().split("\n")
        self.batches.append(lines)
        self.queries.append(dict(request.url.params))
        return httpx.Response(202, json=self.accept(lines))

    def accept(self, lines: list[str]) -> dict[str, Any]:
        results = [
            {"index": n, "status": "rejected", "problem": {"detail": "no good", "code": "not_json"}, "dead_letter": "d"}
            if "bad" in line
            else {"index": n, "status": "accepted", "key": f"s/c/{line}", "event": f"e{line}", "token": f"t{line}"}
            for n, line in enumerate(lines)
        ]
        return {"accepted": 1, "results": results, "token": "+".join(lines)}


def publisher(script: Handler, **options: Any) -> Publisher:
    client = httpx.AsyncClient(transport=httpx.MockTransport(script), base_url="http://test")
    return Publisher.over(Connection(client, "http://test", in_process=False), **options)


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long the publisher wanted to sleep; nobody really does."""
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr("ops.publisher.asyncio.sleep", sleep)
    return slept


def raw(*values: str) -> list[RawEvent]:
    return [RawEvent(value=value.encode()) for value in values]


async def test_sends_in_order_and_says_what_became_of_each() -> None:
    script = Script()
    receipt = await publisher(script).send(raw("1", "bad", "3"))
    assert script.batches == [["1", "bad", "3"]]
    assert [(r.index, r.status, r.key) for r in receipt.results] == [
        (0, "accepted", "s/c/1"),
        (1, "rejected", ""),
        (2, "accepted", "s/c/3"),
    ]
    assert [(r.reason, r.code, r.dead_letter) for r in receipt.rejected] == [("no good", "not_json", "d")]
    assert receipt.tokens == ["1+bad+3"]


async def test_waits_as_long_as_the_server_asks_under_back_pressure(pauses: list[float]) -> None:
    busy = httpx.Response(429, headers={"Retry-After": "7"}, json={"detail": "full"})
    script = Script(busy, busy)
    receipt = await publisher(script).send(raw("1"))
    assert len(receipt.results) == 1
    assert pauses == [7.0, 7.0]


async def test_back_off_grows_while_nothing_answers(pauses: list[float]) -> None:
    script = Script(*[httpx.ConnectError("refused") for _ in range(5)])
    receipt = await publisher(script).send(raw("1"))
    assert receipt.results[0].status == "accepted"
    assert len(pauses) == 5
    assert max(pauses) <= module.LONGEST_PAUSE_S
    assert pauses[4] > pauses[0]


@pytest.mark.parametrize(
    ("answer", "error"),
    [(httpx.Response(429, headers={"Retry-After": "9"}, json={"detail": "full"}), ApiProblem)],
)
async def test_patience_ends(answer: httpx.Response, error: type[Exception]) -> None:
    with pytest.raises(error, match="full"):
        await publisher(Script(answer), patience_s=1).send(raw("1"))


async def test_unreachable_is_said_when_patience_ends() -> None:
    with pytest.raises(Unreachable, match="shinsen run"):
        await publisher(Script(httpx.ConnectError("refused")), patience_s=0).send(raw("1"))


async def test_other_problems_are_not_tried_again(pauses: list[float]) -> None:
    with pytest.raises(ApiProblem, match="no"):
        await publisher(Script(httpx.Response(403, json={"detail": "no"}))).send(raw("1"))
    assert pauses == []


async def test_a_batch_that_was_refused_as_a_whole_is_told_event_by_event() -> None:
    body = {"status": 400, "detail": "all", "results": [{"index": 0, "status": "rejected", "problem": {"code": "x"}}]}
    receipt = await publisher(Script(httpx.Response(400, json=body))).send(raw("bad"))
    assert [r.code for r in receipt.results] == ["x"]
    assert receipt.tokens == []


async def test_too_large_a_request_is_halved_down_to_the_event_that_is_too_large() -> None:
    script = Script(largest=9)
    receipt = await publisher(script).send(raw("1", "2", "a" * 20, "4", "5"))
    assert [(r.index, r.status) for r in receipt.results] == [
        (0, "accepted"),
        (1, "accepted"),
        (2, "rejected"),
        (3, "accepted"),
        (4, "accepted"),
    ]
    assert receipt.results[2].code == "too_large"


async def test_batches_are_bounded_by_number_and_by_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BATCH", 3)
    monkeypatch.setattr(module, "BATCH_BYTES", 10)
    script = Script()
    receipt = await publisher(script).send(raw("1", "2", "3", "4", "5" * 8, "6" * 8))
    assert script.batches == [["1", "2", "3"], ["4", "5" * 8], ["6" * 8]]
    assert [r.index for r in receipt.results] == list(range(6))


async def test_every_kind_of_event_is_one_line() -> None:
    script = Script()
    typed = NativeEvent(source="s", collection="c", key="k", record={"body": "一行目\n二行目"})
    await publisher(script, lane="bulk").send([typed, {"source": "s"}, RawEvent(value=b'{\n"a":\r\n1}')])
    first, second, third = script.batches[0]
    assert json.loads(first)["record"] == {"body": "一行目\n二行目"}
    assert json.loads(second) == {"source": "s"}
    assert json.loads(third) == {"a": 1}
    assert script.queries == [{"lane": "bulk"}]


async def test_a_tombstone_has_no_form_in_http() -> None:
    with pytest.raises(ValueError, match="tombstone"):
        await publisher(Script()).send([RawEvent(value=None)])


async def test_outcomes_are_asked_for() -> None:
    script = Script()
    await publisher(script).send(raw("1"), outcomes_s=2.5)
    assert script.queries[0] == {"lane": "live", "wait": "applied", "timeout": "2.500s"}


async def test_settled_asks_until_the_token_is_reached(pauses: list[float]) -> None:
    script = Script()
    script.states["1+2"] = [{"satisfied": False, "outcome": ""}] * 3 + [{"satisfied": True, "outcome": ""}]
    sender = publisher(script)
    assert await sender.settled(await sender.send(raw("1", "2"))) == []
    assert len(pauses) == 3


async def test_settled_finds_the_dead_letter_in_a_batch() -> None:
    script = Script()
    dead = {"satisfied": False, "outcome": "dead_letter"}
    script.states |= {"1+2+3": [dead], "t2": [dead]}
    sender = publisher(script)
    receipt = await sender.send(raw("1", "2", "3"))
    assert [r.event for r in await sender.settled(receipt)] == ["e2"]
    assert receipt.results[1].outcome == "dead_letter"


async def test_settled_gives_up_in_time() -> None:
    script = Script()
    script.states["1"] = [{"satisfied": False, "outcome": ""}]
    sender = publisher(script)
    with pytest.raises(NotFresh, match="nothing is lost"):
        await sender.settled(await sender.send(raw("1")), timeout_s=0)
