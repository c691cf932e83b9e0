"""Identifiers through `POST /v1/search`: the very one stands first, however it is typed."""

from collections import Counter
from pathlib import Path

import httpx
import pytest

from tests.language.codes import Typed, crowd, questions, questions_with_a_topic
from tests.language.conftest import search_only

pytestmark = [pytest.mark.models, pytest.mark.asyncio(loop_scope="module")]


async def first(client: httpx.AsyncClient, typed: Typed) -> str:
    response = await client.post("/v1/search", json={"query": typed.question, "top_k": 3})
    hits = response.json()["hits"]
    return str(hits[0]["document"]["key"]) if hits else ""


async def test_the_very_identifier_stands_first_in_all_typed_forms(client: httpx.AsyncClient) -> None:
    asked = list(questions())
    assert len(asked) >= 200
    wrong = [
        (typed.form, typed.question, at) for typed in asked if (at := await first(client, typed)) not in typed.right
    ]
    assert wrong == [], Counter(form for form, _, _ in wrong)


async def test_among_those_that_hold_it_words_decide(client: httpx.AsyncClient) -> None:
    wrong = [(t.question, at) for t in questions_with_a_topic() if (at := await first(client, t)) not in t.right]
    assert wrong == []


async def test_words_decide_also_where_more_hold_the_identifier_than_a_search_takes(tmp_path: Path) -> None:
    asked = {
        "LK-17の制動輪の摩耗": "code-and-word",
        "ｌｋ－１７ 制動輪": "code-and-word",
        "LK-17とQZ-5": "both-codes",
        "QZ-5 LK-17": "both-codes",
    }
    async with search_only(tmp_path, crowd()) as crowded:
        found = {question: await first(crowded, Typed(question, "", frozenset())) for question in asked}
    assert found == {question: f"codes/notes/{key}" for question, key in asked.items()}
