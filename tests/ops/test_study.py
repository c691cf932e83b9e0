"""The rankers of the study: values by hand from their definitions, and a whole engine over a tiny set."""

import asyncio
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ops.bench.study import weaviate
from ops.bench.study.bm25 import Bm25
from ops.bench.study.candidates import Listed, fused
from ops.bench.study.engines import fuse
from ops.bench.study.kept import runs
from ops.bench.study.learned import crossed_weights
from ops.bench.study.retrievers import Words
from ops.bench.study.terms import analysis
from ops.evaluation.configurations import Configuration, read_configurations
from ops.evaluation.formats import Place
from ops.evaluation.golden import GoldenQuestion, GoldenSet, Passage
from ops.evaluation.ranking import Ranking
from ops.evaluation.running import Run
from ops.stack.server import Endpoint
from pipeline.errors import InvalidConfiguration

PLACE = Place("shared", "passages")
SET = GoldenSet(
    name="tiny",
    questions=(
        GoldenQuestion(id="1", question="打ち合わせの予定", relevant={"shared/passages/a": 3}),
        GoldenQuestion(id="2", question="引越しの荷物", relevant={"shared/passages/b": 3}),
    ),
    passages=(
        Passage("a", "会議", "打合せは来週の予定である。"),
        Passage("b", "転居", "引っ越しの荷物を運ぶ。"),
        Passage("c", "天気", "雨が降るので荷物は運ばない。"),
    ),
)


def ranked(options: dict[str, Any], question: int) -> list[str]:
    async def rank() -> list[str]:
        async with fuse(SET, options, PLACE) as ranker:
            return list(await ranker.rank(SET.questions[question]))  # type: ignore[arg-type]

    return asyncio.run(rank())


def test_bm25_by_hand() -> None:
    index = Bm25([["雨", "雨", "雪"], ["雪"]], k1=1.2, b=0.75)
    idf = math.log(1 + (2 - 1 + 0.5) / (1 + 0.5))
    expected = idf * 2 * 2.2 / (2 + 1.2 * (0.25 + 0.75 * 3 / 2))
    assert index.scores(["雨", "雨", "霧"]).tolist() == pytest.approx([expected, 0.0])


def test_coverage_is_the_share_of_the_idf_that_a_document_holds() -> None:
    index = Bm25([["雨", "雪"], ["雪"]])
    rare, common, unknown = index.idf(1), index.idf(2), index.idf(0)
    assert index.coverage(["雨", "雪"], 0) == pytest.approx(1.0)
    assert index.coverage(["雨", "雪"], 1) == pytest.approx(common / (rare + common))
    assert index.coverage(["雨", "霧"], 0) == pytest.approx(rare / (rare + unknown))
    assert index.coverage([], 0) == 0.0


def test_fusion_by_hand() -> None:
    both = fused(
        [
            Listed(np.array([4, 2, 7]), np.array([10.0, 6.0, 2.0])),
            Listed(np.array([2, 9]), np.array([0.9, 0.8])),
        ]
    )
    assert both.documents.tolist() == [2, 4, 7, 9]
    assert both.shares.tolist() == [[0.5, 1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]]
    assert both.by_weights([0.7, 0.3]) == [4, 2, 7, 9]
    assert both.by_weights([0.5, 0.5]) == [2, 4, 7, 9]
    assert both.by_ranks(60) == [2, 4, 9, 7]


def test_analyses_differ_in_what_the_study_says_they_do() -> None:
    text = "医薬品を引越して運んだ"
    assert analysis("A")(text)[:2] == ["医薬", "品"]
    assert analysis("C")(text)[0] == "医薬品"
    assert analysis("A")("引越しの打合せ") == analysis("A")("引っ越しの打ち合わせ")
    assert "を" not in analysis("A")(text)
    assert "を" in analysis("A-surface")(text)
    assert analysis("bigrams")("東京都") == ["東京", "京都"]
    assert len(analysis("A+C")(text)) == len(analysis("A")(text)) + len(analysis("C")(text))
    with pytest.raises(InvalidConfiguration, match="no analysis"):
        analysis("D")


def test_normalized_words_find_another_spelling_that_surfaces_do_not() -> None:
    assert ranked({"lists": ["A"]}, 0)[0] == "shared/passages/a"
    normalized = Bm25([analysis("A")(each.text) for each in SET.passages])
    surface = Bm25([analysis("A-surface")(each.text) for each in SET.passages])
    assert normalized.scores(analysis("A")("引越し"))[1] > 0
    assert surface.scores(analysis("A-surface")("引越し"))[1] == 0


def test_a_user_dictionary_of_titles_keeps_a_title_whole() -> None:
    passages = (Passage("1", "富田川のオオウナギ生息地", "川"), Passage("2", "川", "富田川"))
    bare, named = Words(passages, "A", 1.2, 0.75), Words(passages, "A", 1.2, 0.75, titles=True)
    assert "富田川のオオウナギ生息地" not in bare.terms("富田川のオオウナギ生息地とは")
    assert "富田川のオオウナギ生息地" in named.terms("富田川のオオウナギ生息地とは")


def test_lists_are_fused_over_one_set_of_passages() -> None:
    found = ranked({"lists": ["A", "bigrams"], "by": "ranks"}, 1)
    assert found[0] == "shared/passages/b"
    assert set(found) <= {PLACE.key(each.id) for each in SET.passages}


@pytest.mark.parametrize(
    "options", [{"lists": ["A", "bigrams"]}, {"lists": ["A"], "by": "coverage"}, {"lists": ["A"], "k2": 1}]
)
def test_options_that_mean_nothing_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidConfiguration):
        ranked(options, 0)


def test_learned_weights_choose_the_list_that_is_right_on_other_pages_only() -> None:
    passages = tuple(Passage(str(n), f"page {n}", "") for n in range(40))
    questions = tuple(GoldenQuestion(id=str(n), question=str(n), relevant={PLACE.key(str(n)): 1}) for n in range(40))
    golden = GoldenSet(name="two lists", questions=questions, passages=passages)
    wrong = {n: (n + 1) % 40 for n in range(40)}
    known = {
        str(n): fused(
            [
                Listed(np.array([wrong[n], n]), np.array([1.0, 0.1])),
                Listed(np.array([n, wrong[n]]), np.array([1.0, 0.1])),
            ]
        )
        for n in range(40)
    }
    weights = crossed_weights(golden, known)
    assert all(second > first for first, second in weights.values())
    # A page that alone prefers the first list does not get it: its weights come from the others.
    known["7"] = fused([Listed(np.array([7, 8]), np.array([1.0, 0.1])), Listed(np.array([8, 7]), np.array([1.0, 0.1]))])
    assert crossed_weights(golden, known)["7"][1] > 0.5


def test_an_interrupted_study_goes_on_with_the_engines_that_are_missing(tmp_path: Path) -> None:
    product, one, other = (
        Configuration(name=name, engine=engine) for name, engine in zip("pab", ("", "x:y", "x:y"), strict=True)
    )
    asked: list[str] = []

    async def ask(some: Sequence[Configuration]) -> list[Run]:
        asked.extend(each.name for each in some)
        found = [Ranking(documents=(f"shared/passages/{each.name}",)) for each in some]
        return [Run(configuration=c, rankings=[r] * 2, seconds=1.0) for c, r in zip(some, found, strict=True)]

    asyncio.run(runs(SET, [one], ask, tmp_path))
    asked.clear()
    done = asyncio.run(runs(SET, [product, one, other], ask, tmp_path))
    assert sorted(asked) == ["b", "p"]
    assert [run.configuration.name for run in done] == ["p", "a", "b"]
    assert [run.rankings[1].documents[0][-1] for run in done] == ["p", "a", "b"]
    asked.clear()
    asyncio.run(runs(GoldenSet(name="tiny", questions=SET.questions[:1]), [one], ask, tmp_path))
    assert asked == ["a"], "other questions are another set"


def test_the_committed_configurations_are_read() -> None:
    file = Path(weaviate.__file__).with_name("shared.yaml")
    assert len(read_configurations(file).configurations) >= 20


def test_weaviate_ranks_with_its_own_tokenization(
    stack_server: Callable[[str], Endpoint], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = stack_server("weaviate")
    monkeypatch.setenv("SHINSEN_WEAVIATE", server.url)
    monkeypatch.setenv("SHINSEN_WEAVIATE_GRPC", f"127.0.0.1:{server.ports['grpc']}")

    async def rank() -> list[str]:
        async with weaviate.bm25(SET, {"tokenization": "trigram"}, PLACE) as ranker:
            return list(await ranker.rank(SET.questions[1]))  # type: ignore[arg-type]

    assert asyncio.run(rank())[0] == "shared/passages/b"
