"""`POST /v1/query`: routes, citations, spans, freshness, refusals."""

from typing import Any

import httpx
import pytest

from tests.api.conftest import Load, as_groups
from tests.api.plant import CAUSE, machine, report

QUESTION = "Q-42の停止原因は何か。"


async def ask(client: httpx.AsyncClient, question: str, *groups: str, **more: Any) -> dict[str, Any]:
    headers = as_groups(*(groups or ("staff",)))
    response = await client.post("/v1/query", json={"question": question, **more}, headers=headers)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def cited(answer: dict[str, Any]) -> set[str]:
    keys = {piece["n"]: piece["document"]["key"] for piece in answer["evidence"]}
    return {keys[n] for claim in answer["answer"]["claims"] for n in claim["citations"]}


@pytest.mark.usefixtures("plant")
class TestAnswers:
    async def test_a_cause_question_goes_to_the_graph_and_cites_its_cause(self, client: httpx.AsyncClient) -> None:
        answer = await ask(client, QUESTION)
        assert answer["route"]["strategy"] == "graph" and answer["route"]["by"] == "rule"
        assert answer["route"]["entities"][0]["id"] == "id:q-42"
        assert CAUSE in answer["answer"]["text"] and answer["answer"]["answerable"]
        assert "plant/reports/R1" in cited(answer)
        assert answer["answer"]["groundedness"] == 1.0
        assert [step["outcome"] for step in answer["route"]["steps"]] == ["ok", "ok"]

    async def test_a_manual_that_never_names_the_machine_is_reached_with_its_path(
        self, client: httpx.AsyncClient
    ) -> None:
        answer = await ask(client, QUESTION)
        manual = next(piece for piece in answer["evidence"] if piece["document"]["key"] == "plant/reports/M1")
        assert [(s["subject"], s["predicate"], s["object"], s["direction"]) for s in manual["path"]] == [
            ("Q-42", "is_a", "粉砕機", "out"),
            ("安全手順書", "applies_to", "粉砕機", "in"),
        ]
        assert [step["document"] for step in manual["path"]] == ["plant/machines/Q-42", "plant/reports/M1"]
        assert "Q-42" not in manual["text"] and "plant/reports/M1" in cited(answer)

    async def test_without_expansion_the_manual_is_not_there(self, client: httpx.AsyncClient) -> None:
        answer = await ask(client, QUESTION, source="vector", top_k=4)
        assert answer["route"]["by"] == "override"
        assert "plant/reports/M1" not in cited(answer)
        assert all(not piece["path"] for piece in answer["evidence"])

    async def test_evidence_and_claims_stand_in_the_body_exactly(self, client: httpx.AsyncClient) -> None:
        answer = await ask(client, QUESTION)
        assert answer["evidence"]
        for piece in answer["evidence"]:
            body = (await client.get(f"/v1/documents/{piece['document']['key']}")).json()["body"]
            start, end = piece["span"]
            assert body[start:end] == piece["text"]
            for claim in answer["answer"]["claims"]:
                for span in claim["spans"]:
                    if span["document"] == piece["document"]["key"]:
                        assert body[span["span"][0] : span["span"][1]] == claim["text"]

    async def test_a_look_up_goes_to_the_records(self, client: httpx.AsyncClient) -> None:
        answer = await ask(client, "Q-42の設置場所はどこか。")
        assert answer["route"]["strategy"] == "db"
        assert "第三倉庫" in answer["answer"]["text"] and "第一倉庫" not in answer["answer"]["text"]
        assert cited(answer) == {"plant/machines/Q-42"}
        assert answer["evidence"][0]["kind"] == "record"
        assert answer["evidence"][0]["fields"]["place"] == "第三倉庫"

    async def test_an_alias_finds_the_record(self, client: httpx.AsyncClient) -> None:
        answer = await ask(client, "赤い粉砕機の担当者は誰か。")
        assert "北村次郎" in answer["answer"]["text"]
        assert cited(answer) == {"plant/machines/Q-42"}

    async def test_an_unknown_code_is_not_answered_by_a_known_one(self, client: httpx.AsyncClient) -> None:
        answer = await ask(client, "Q-43の停止原因は何か。")
        assert not answer["answer"]["answerable"] and not answer["answer"]["claims"]
        assert answer["answer"]["groundedness"] == 0.0

    async def test_what_no_document_tells_is_not_answered(self, client: httpx.AsyncClient) -> None:
        answer = await ask(client, "火星探査機の打上げ予算は幾ら")
        assert not answer["answer"]["answerable"]

    async def test_an_empty_source_falls_back_to_the_texts(self, client: httpx.AsyncClient) -> None:
        answer = await ask(client, "食堂の献立はいつ変わるか", source="db")
        assert [(s["source"], s["outcome"]) for s in answer["route"]["steps"]] == [("vector", "ok"), ("db", "empty")]
        assert cited(answer) == {"plant/reports/N1"} and answer["warnings"]

    async def test_filters_limit_the_evidence(self, client: httpx.AsyncClient) -> None:
        answer = await ask(client, QUESTION, filters={"fields": {"status": "継続"}})
        assert {piece["document"]["key"] for piece in answer["evidence"]} == {"plant/reports/R2"}

    async def test_restricted_fields_are_not_in_the_evidence(self, client: httpx.AsyncClient) -> None:
        hidden = await ask(client, "Q-42の設置場所はどこか。", "staff")
        shown = await ask(client, "Q-42の設置場所はどこか。", "staff", "accounting")
        assert "price" not in hidden["evidence"][0]["fields"]
        assert shown["evidence"][0]["fields"]["price"] == 1234567

    async def test_hidden_documents_give_neither_evidence_nor_paths(self, client: httpx.AsyncClient) -> None:
        answer = await ask(client, QUESTION, "staff", top_k=50, source="all")
        assert "plant/reports/S1" not in str(answer) and "賠償" not in str(answer)
        lawyer = await ask(client, QUESTION, "staff", "legal", top_k=50)
        assert "plant/reports/S1" in {piece["document"]["key"] for piece in lawyer["evidence"]}


class TestFreshness:
    async def test_a_token_shows_the_new_state_and_never_the_old(self, client: httpx.AsyncClient, load: Load) -> None:
        await load([report("R1", "Q-42の停止原因は、電源の故障である。", machine="Q-42")])
        posted = await client.post(
            "/v1/events", json=report("R1", "Q-42の停止原因は、歯車の摩耗である。", 2, machine="Q-42")
        )
        answer = await ask(client, QUESTION, min_freshness=posted.json()["token"], wait="20s")
        assert "歯車の摩耗" in answer["answer"]["text"] and "電源" not in str(answer)
        assert answer["freshness"]["waited_ms"] >= 0

    async def test_a_deleted_document_is_gone(self, client: httpx.AsyncClient, load: Load) -> None:
        await load([machine("Q-42"), report("R1", CAUSE, machine="Q-42")])
        token = await load([{**report("R1", "", 2), "op": "delete", "record": None}])
        answer = await ask(client, QUESTION, min_freshness=token)
        assert "plant/reports/R1" not in str(answer) and "潤滑" not in str(answer)

    async def test_a_position_never_reached_is_504(self, client: httpx.AsyncClient, plant: str) -> None:
        from schemas.freshness import encode_token
        from schemas.outcome import TokenPart

        token = encode_token([TokenPart("plant/reports/R9", "000000.00000000000000000009.5.0000000000000000")])
        response = await client.post("/v1/query", json={"question": QUESTION, "min_freshness": token, "wait": "50ms"})
        assert response.status_code == 504
        assert response.json()["type"].endswith(":not-fresh")

    @pytest.mark.parametrize("token", ["", "x", "f1.AAAA", "f1." + "A" * 2_000_000])
    async def test_a_broken_token_is_400(self, client: httpx.AsyncClient, token: str) -> None:
        response = await client.post("/v1/query", json={"question": QUESTION, "min_freshness": token})
        assert response.status_code in (400, 413)

    async def test_a_tampered_token_is_400_with_pointer(self, client: httpx.AsyncClient, plant: str) -> None:
        tampered = plant[:-3] + ("AAA" if plant[-3:] != "AAA" else "BBB")
        response = await client.post("/v1/query", json={"question": QUESTION, "min_freshness": tampered})
        assert response.status_code == 400
        assert response.json()["errors"][0]["pointer"] == "/min_freshness"

    async def test_a_source_position_needs_the_stack(self, client: httpx.AsyncClient) -> None:
        wanted = {"source": "erp", "position": "0/16B3748"}
        response = await client.post("/v1/query", json={"question": QUESTION, "min_freshness": wanted})
        assert response.status_code == 400 and "needs the stack" in response.json()["detail"]
        assert response.json()["errors"][0]["pointer"] == "/min_freshness"


class TestRefusals:
    @pytest.mark.parametrize(
        "more", [{"mode": "self_rag"}, {"mode": "crag"}, {"mode": "decompose"}, {"source": "web"}, {"source": "direct"},
                 {"session_id": "s"}, {"as_of": "2025-01-01"}],
    )  # fmt: skip
    async def test_later_features_are_501(self, client: httpx.AsyncClient, more: dict[str, str]) -> None:
        response = await client.post("/v1/query", json={"question": "何か", **more})
        assert response.status_code == 501
        assert "not in this version" in response.json()["detail"] or "language model" in response.json()["detail"]

    @pytest.mark.parametrize(
        ("body", "pointer"),
        [
            ({}, "/question"),
            ({"question": "  "}, "/question"),
            ({"question": ""}, "/question"),
            ({"question": 5}, "/question"),
            ({"question": "あ" * 10_001}, "/question"),
            ({"question": "a", "topk": 3}, "/topk"),
            ({"question": "a", "top_k": 0}, "/top_k"),
            ({"question": "a", "top_k": 101}, "/top_k"),
            ({"question": "a", "top_k": "5"}, "/top_k"),
            ({"question": "a", "source": "nowhere"}, "/source"),
            ({"question": "a", "wait": "5 minutes"}, "/wait"),
            ({"question": "a", "wait": "61s"}, "/wait"),
            ({"question": "a", "filters": {"sources": ["x"]}}, "/filters/sources"),
            ({"question": "a", "filters": {"updated_at": {"gte": "soon"}}}, "/filters/updated_at/gte"),
        ],
    )
    async def test_bad_input_is_400_with_a_pointer(
        self, client: httpx.AsyncClient, body: dict[str, Any], pointer: str
    ) -> None:
        response = await client.post("/v1/query", json=body)
        assert response.status_code == 400, response.text
        assert response.headers["content-type"].startswith("application/problem+json")
        assert response.json()["errors"][0]["pointer"] == pointer

    @pytest.mark.parametrize(
        "raw", [b"", b"nope", b'{"question": "\xff"}', b'{"question": "\\ud800"}', b"[" * 100_000, b"[]", b"null"]
    )
    async def test_what_is_no_json_object_is_400(self, client: httpx.AsyncClient, raw: bytes) -> None:
        response = await client.post("/v1/query", content=raw, headers={"content-type": "application/json"})
        assert response.status_code == 400, response.text

    async def test_other_media_types_are_415(self, client: httpx.AsyncClient) -> None:
        response = await client.post("/v1/query", data={"question": "a"})
        assert response.status_code == 415

    @pytest.mark.parametrize(
        "question",
        ["。。。!?", "\x00\x01", '"NEAR(" OR * - (', "は が を", "a" * 10_000, "'; DROP TABLE", "{ __schema }"],
    )
    async def test_no_question_fails(self, client: httpx.AsyncClient, plant: str, question: str) -> None:
        assert (await ask(client, question))["question"] == question
