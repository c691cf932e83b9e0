"""Answers while documents change: staged loads, changes between reading and answering."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from api.answering.extract import score_sentences
from api.options import ApiOptions
from pipeline.embedded.runtime import EmbeddedRuntime
from pipeline.errors import BackendUnavailable
from pipeline.ports.graph import Graph
from pipeline.settings import Settings
from pipeline.wiring import open_embedded
from tests.api.conftest import Load, client_of
from tests.api.plant import CAUSE, machine, report

QUESTION = "Q-42の停止原因は何か。"


class TestEvidenceThatChanges:
    """The document changes after it was read and before the answer leaves."""

    async def ask(
        self, client: httpx.AsyncClient, load: Load, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], times: int
    ) -> dict[str, Any]:
        await load([machine("Q-42"), report("R1", CAUSE, machine="Q-42")])
        calls = 0

        async def meanwhile(*given: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls <= times:
                await load([{**change, "position": 1 + calls}])
            return await score_sentences(*given)

        monkeypatch.setattr("api.answering.flow.score_sentences", meanwhile)
        response = await client.post("/v1/query", json={"question": QUESTION}, headers={"X-Shinsen-Groups": "staff"})
        assert response.status_code == 200, response.text
        answer: dict[str, Any] = response.json()
        return answer

    async def test_an_update_is_fetched_once_more(
        self, client: httpx.AsyncClient, load: Load, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        change = report("R1", "Q-42の停止原因は、歯車の摩耗である。", 2, machine="Q-42")
        answer = await self.ask(client, load, monkeypatch, change, 1)
        assert "歯車" in answer["answer"]["text"] and "潤滑" not in str(answer) and not answer["warnings"]

    async def test_a_delete_leaves_nothing(
        self, client: httpx.AsyncClient, load: Load, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        answer = await self.ask(client, load, monkeypatch, {**report("R1", ""), "op": "delete", "record": None}, 1)
        assert "plant/reports/R1" not in str(answer) and "潤滑" not in str(answer)

    async def test_a_narrowed_acl_holds_before_the_answer_leaves(
        self, client: httpx.AsyncClient, load: Load, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        answer = await self.ask(client, load, monkeypatch, report("R1", CAUSE, machine="Q-42", acl=["legal"]), 1)
        assert "plant/reports/R1" not in str(answer) and "潤滑" not in str(answer)

    async def test_what_changes_all_the_time_is_left_out_with_a_warning(
        self, client: httpx.AsyncClient, load: Load, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        answer = await self.ask(client, load, monkeypatch, report("R1", CAUSE, machine="Q-42"), 2)
        assert "plant/reports/R1" not in {piece["document"]["key"] for piece in answer["evidence"]}
        assert any("changed while answering" in warning for warning in answer["warnings"])


class TestSourcesThatFail:
    @pytest.fixture
    async def graph(self, runtime: EmbeddedRuntime, plant: str) -> Graph:
        async with runtime.live() as indexes:
            return indexes.graph

    async def test_a_broken_graph_leaves_the_texts(
        self, client: httpx.AsyncClient, graph: Graph, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def broken(*_: Any) -> Any:
            raise BackendUnavailable("the graph is away")

        monkeypatch.setattr(graph, "facts_about", broken)
        answer = (await client.post("/v1/query", json={"question": QUESTION})).json()
        assert CAUSE in answer["answer"]["text"]
        assert [(s["source"], s["outcome"]) for s in answer["route"]["steps"]] == [("vector", "ok"), ("graph", "error")]
        assert any("graph" in warning for warning in answer["warnings"])

    @pytest.fixture(params=["refuses", "hangs"])
    async def no_chunks(
        self,
        request: pytest.FixtureRequest,
        runtime: EmbeddedRuntime,
        plant: str,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        async def refuses(*_: Any, **__: Any) -> Any:
            raise BackendUnavailable("the index is away")

        async def hangs(*_: Any, **__: Any) -> Any:
            await asyncio.sleep(60)

        async with runtime.live() as indexes:
            for name in ("lexical", "dense", "get", "texts"):
                monkeypatch.setattr(indexes.chunks, name, refuses if request.param == "refuses" else hangs)
        monkeypatch.setattr("api.retrieval.passages._INDEX_S", 0.3)
        monkeypatch.setattr("api.retrieval.document_view._STORE_S", 0.3)

    @pytest.mark.usefixtures("no_chunks")
    async def test_without_the_chunk_index_graph_and_records_answer(self, runtime: EmbeddedRuntime) -> None:
        async with client_of(runtime, ApiOptions(source_timeout_s=0.5)) as client:
            answer = (await client.post("/v1/query", json={"question": QUESTION})).json()
            assert CAUSE in answer["answer"]["text"] and answer["answer"]["answerable"]
            [first, *others] = answer["route"]["steps"]
            assert (first["source"], first["outcome"] in ("error", "timeout")) == ("vector", True)
            assert [step["outcome"] for step in others] == ["ok"]
            assert any("the source vector" in warning for warning in answer["warnings"])
            piece = answer["evidence"][0]
            shown = (await client.get(f"/v1/documents/{piece['document']['key']}")).json()
            start, end = piece["span"]
            assert shown["body"][start:end] == piece["text"]
            named = (await client.post("/v1/query", json={"question": "Q-42", "source": "vector"})).json()
            assert "plant/" in named["evidence"][0]["document"]["key"], "what the question names is found all the same"
            assert (await client.post("/v1/search", json={"query": "潤滑"})).status_code == 503

    @pytest.mark.usefixtures("no_chunks")
    async def test_texts_out_of_records_respect_access(self, runtime: EmbeddedRuntime) -> None:
        async with client_of(runtime, ApiOptions(source_timeout_s=0.5)) as client:
            answer = await client.post("/v1/query", json={"question": QUESTION}, headers={"X-Shinsen-Groups": "nobody"})
        assert answer.status_code == 200 and CAUSE not in answer.text and not answer.json()["evidence"]

    async def test_a_document_without_its_facts_says_so(
        self, client: httpx.AsyncClient, graph: Graph, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def broken(*_: Any) -> Any:
            raise BackendUnavailable("the graph is away")

        monkeypatch.setattr(graph, "facts_of", broken)
        shown = (await client.get("/v1/documents/plant/reports/R1")).json()
        assert CAUSE in shown["body"] and shown["facts"] == [] and "no facts" in shown["warnings"][0]

    async def test_a_broken_embedder_leaves_the_words(
        self, client: httpx.AsyncClient, runtime: EmbeddedRuntime, plant: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def broken(_: str) -> bytes:
            raise BackendUnavailable("the model is away")

        monkeypatch.setattr(runtime.embedder, "query", broken)
        answer = (await client.post("/v1/query", json={"question": QUESTION})).json()
        assert CAUSE in answer["answer"]["text"] and "words only" in answer["warnings"][0]
        found = (await client.post("/v1/search", json={"query": QUESTION})).json()
        assert found["hits"] and "words only" in found["warnings"][0]

    async def test_a_slow_graph_is_left_out(
        self, runtime: EmbeddedRuntime, graph: Graph, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def slow(*_: Any) -> Any:
            await asyncio.sleep(30)

        monkeypatch.setattr(graph, "facts_about", slow)
        async with client_of(runtime, ApiOptions(source_timeout_s=0.2)) as client:
            answer = (await client.post("/v1/query", json={"question": QUESTION})).json()
        assert CAUSE in answer["answer"]["text"] and answer["route"]["steps"][-1]["outcome"] == "timeout"


class TestStagedLoad:
    @pytest.fixture
    async def slow(self, settings: Settings) -> AsyncIterator[httpx.AsyncClient]:
        """A start whose models take their time."""
        slow_settings = settings.model_copy(update={"stub_delay": 0.4})
        async with open_embedded(slow_settings) as runtime, client_of(runtime, slow_settings) as opened:
            yield opened

    async def test_text_is_found_first_and_says_so(self, slow: httpx.AsyncClient) -> None:
        events = [report(f"T{n}", f"給水ポンプ{n}号の記録。") for n in range(12)]
        token = (await slow.post("/v1/events", json=events)).json()["token"]
        stages: list[str] = []
        for _ in range(100):
            found = (await slow.post("/v1/search", json={"query": "給水ポンプ", "top_k": 50})).json()
            stages += [hit["stage"] for hit in found["hits"]]
            if stages:
                break
            await asyncio.sleep(0.05)
        assert "text" in stages
        pending = (await slow.get("/v1/freshness", params={"token": token})).json()
        assert pending["token"]["satisfied"] is False and pending["watermarks"]["pending"] > 0
        whole = {"query": "給水ポンプ", "top_k": 50, "min_freshness": token, "wait": "60s"}
        found = (await slow.post("/v1/search", json=whole)).json()
        assert {hit["stage"] for hit in found["hits"]} == {"full"} and len(found["hits"]) == 12


class TestSearchesWhileADocumentChanges:
    """The document is there all the while, so it is found, whatever the search came between."""

    @pytest.mark.parametrize("call", ["lexical", "texts"])
    async def test_it_is_found(
        self,
        client: httpx.AsyncClient,
        runtime: EmbeddedRuntime,
        load: Load,
        monkeypatch: pytest.MonkeyPatch,
        call: str,
    ) -> None:
        await load([report("R1", "軸受を点検した。1回目。"), report("R2", "歯車を点検した。")])
        async with runtime.live() as indexes:
            asked, changes = getattr(indexes.chunks, call), 0

            async def meanwhile(*given: Any, **more: Any) -> Any:
                """Change the document after the index has answered, or before the chunk found is read."""
                nonlocal changes
                answered = None if call == "texts" else await asked(*given, **more)
                if not changes:
                    changes += 1
                    await load([report("R1", "軸受を点検した。2回目。", 2)])
                return await asked(*given, **more) if call == "texts" else answered

            monkeypatch.setattr(indexes.chunks, call, meanwhile)
        found = (await client.post("/v1/search", json={"query": "軸受"})).json()["hits"]
        texts = {hit["document"]["key"]: hit["text"] for hit in found}
        assert texts["plant/reports/R1"] == "軸受を点検した。2回目。"
