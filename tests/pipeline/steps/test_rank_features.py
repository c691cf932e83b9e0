"""Features of the embedded reranker: bounds, independence of order, and what each speaks for."""

import math
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pytest import approx

from pipeline.backends.reranker_embedded import scores
from pipeline.ports.reranker import RerankPassage, RerankQuestion
from pipeline.ranking import load_ranking, plain_dense, ranking_for
from pipeline.steps.rank_features import FEATURES, features
from pipeline.steps.rank_weights import weights
from schemas.document import Variant

WORDS = st.lists(st.sampled_from("甲乙丙丁戊己"), max_size=12).map(tuple)
SIGNALS = st.dictionaries(st.sampled_from(["bm25", "dense"]), st.floats(-5, 50), max_size=2)
PASSAGES = st.lists(
    st.builds(RerankPassage, text=st.just(""), terms=WORDS, title_terms=WORDS, bigrams=WORDS, signals=SIGNALS),
    max_size=8,
)
QUESTIONS = st.builds(
    RerankQuestion, text=st.just(""), terms=WORDS.map(lambda w: tuple(dict.fromkeys(w))), bigrams=WORDS
)


def passage(words: str, **signals: float) -> RerankPassage:
    return RerankPassage(
        text=words,
        terms=tuple(words),
        bigrams=tuple(map("".join, pairwise(words))),
        signals=signals,
    )


def column(question: str, name: str, *passages: RerankPassage) -> list[float]:
    asked = RerankQuestion(text=question, terms=tuple(question), bigrams=tuple(map("".join, pairwise(question))))
    return [float(value) for value in features(asked, passages)[:, FEATURES.index(name)]]


@given(QUESTIONS, PASSAGES, st.randoms())
@settings(max_examples=150, deadline=None)
def test_scores_are_bounded_and_do_not_depend_on_the_order(
    question: RerankQuestion, passages: list[RerankPassage], chance: st.DrawFn
) -> None:
    table = features(question, passages)
    assert table.shape == (len(passages), len(FEATURES)) and ((table >= 0) & (table <= 1)).all()
    order = list(range(len(passages)))
    chance.shuffle(order)  # type: ignore[attr-defined]
    given_order = scores(load_ranking(), question, passages)
    assert scores(load_ranking(), question, [passages[n] for n in order]) == [given_order[n] for n in order]


@given(st.text("甲乙丙丁戊己", max_size=8), st.lists(st.text("甲乙丙丁戊己", max_size=60), min_size=1, max_size=6))
@settings(max_examples=150, deadline=None)
def test_stretches_and_nearness_are_those_that_a_plain_reading_finds(question: str, texts: list[str]) -> None:
    terms = list(dict.fromkeys(question))
    asked, passages = "".join(terms), [passage(text) for text in texts]
    weights = {t: math.log(1 + (len(texts) - n + 0.5) / (n + 0.5)) for t in terms for n in [sum(t in x for x in texts)]}
    total = sum(weights.values()) or 1
    possible = sum(min(weights[a], weights[b]) for a, b in pairwise(terms)) / total or 1
    for text, window, proximity in zip(
        texts, column(asked, "window", *passages), column(asked, "proximity", *passages), strict=True
    ):
        stretches = [set(text[start : start + 30]) for start in range(max(len(text) - 29, 1))]
        assert window == approx(max(sum(weights[t] for t in terms if t in s) for s in stretches) / total, abs=1e-8)
        near = 0.0
        for a, b in combinations(terms, 2):
            gaps = [abs(i - j) for i, x in enumerate(text) for j, y in enumerate(text) if (x, y) == (a, b)]
            near += min(weights[a], weights[b]) / total / min(gaps) ** 2 if gaps and min(gaps) <= 5 else 0
        assert proximity == approx(min(1, near / possible), abs=1e-8)


def worded(question: str, *variants: Variant) -> RerankQuestion:
    return RerankQuestion(
        text="", terms=tuple(question), bigrams=tuple(map("".join, pairwise(question))), variants=variants
    )


@given(st.text("甲乙丙丁戊己", max_size=5), st.text("甲乙丙丁戊己", max_size=5), PASSAGES, st.floats(0.01, 0.99))
@settings(max_examples=150, deadline=None)
def test_another_wording_never_takes_and_gives_what_it_would_alone(
    question: str, other: str, passages: list[RerankPassage], weight: float
) -> None:
    variant = Variant(terms=tuple(other), bigrams=tuple(map("".join, pairwise(other))), weight=weight)
    own = [n for n, name in enumerate(FEATURES) if name not in ("dense_uncovered", "same_title", "others_same_title")]
    typed, said, both = (
        features(one, passages)[:, own] for one in (worded(question), worded(other), worded(question, variant))
    )
    assert both == approx(typed + weight * np.maximum(0, said - typed), abs=1e-8)


def test_an_unbroken_run_counts_for_more_than_its_parts() -> None:
    whole, parts, none = column("甲乙丙丁戊", "run", passage("己甲乙丙丁戊"), passage("甲乙己丙丁戊"), passage("己"))
    assert whole == 1.0 > parts > none == 0.0


def test_a_better_feature_never_makes_a_passage_worse() -> None:
    for kind in ("concept", "identifier", "natural_sentence", "unheard of"):
        given_weights = weights(load_ranking(), kind)
        assert (given_weights >= 0).all() and np.isclose(given_weights.sum(), 1)


def test_words_in_a_row_stand_before_scattered_ones() -> None:
    near, far = passage("甲乙丙丁丁丁丁丁丁丁丁丁"), passage("甲丁丁丁丁乙丁丁丁丁丁丙")
    for name in ("order", "proximity", "run"):
        one, other = column("甲乙丙", name, near, far)
        assert one > other, name


def test_rare_words_weigh_more_than_common_ones() -> None:
    rare, common, *_ = column("甲乙", "coverage", passage("甲"), passage("乙"), passage("乙"), passage("乙"))
    assert rare > common


def test_the_dense_score_counts_for_more_where_words_are_missing() -> None:
    covered = column("甲乙", "dense_uncovered", passage("甲乙", bm25=2.0, dense=0.8), passage("丙", dense=0.9))
    lacking = column("甲乙", "dense_uncovered", passage("甲", bm25=2.0, dense=0.8), passage("丙", dense=0.9))
    assert covered[1] == 0.0 < lacking[1]


def test_a_passage_with_a_nearer_sentence_stands_before_one_that_is_as_near_as_a_whole() -> None:
    near = passage("甲", dense=0.8, sentence=0.9)
    column_of = column("甲乙", "dense", near, passage("甲", dense=0.8, sentence=0.7), passage("甲", dense=0.8))
    assert column_of == [1.0, 0.0, pytest.approx(0.5)], "one that is a sentence is as near as it is"
    assert column("甲乙", "dense", near, passage("甲", sentence=1.0))[1] == 0.0, "only the list of vectors counts"


def test_an_asked_alpha_is_the_share_of_the_dense_score() -> None:
    for alpha in (0.0, 0.4, 1.0):
        given_weights = weights(load_ranking(), "concept", alpha)
        assert np.isclose(given_weights[FEATURES.index("dense")], alpha)
        assert given_weights[FEATURES.index("dense_uncovered")] == 0.0


def test_weights_of_another_encoder_keep_the_words_and_make_the_dense_score_plain() -> None:
    own = load_ranking()
    assert ranking_for(own, own.encoder) is own and ranking_for(own, own.encoder.split("/")[0] + "/newer-9") is own
    other = ranking_for(own, "another-model/1")
    assert other == plain_dense(own) and other.by_type == {} and set(other.alphas.values()) <= {0.3}
    assert other.weights["words"] == own.weights["words"]
    assert np.isclose(weights(other, "concept")[FEATURES.index("dense")], 0.3)


def test_pairs_of_hiragana_say_nothing_and_the_title_has_pairs_too() -> None:
    asked = RerankQuestion(text="", bigrams=("梅雨", "雨と", "とは", "はな", "なに"))
    grammar = RerankPassage(text="", bigrams=("とは", "はな", "なに"))
    in_title = RerankPassage(text="", title="梅雨", bigrams=("季節",))
    table = features(asked, [grammar, in_title])
    for name in ("bigrams", "bigrams_bm25", "run", "characters"):
        one, other = table[:, FEATURES.index(name)]
        assert one == 0.0 < other, name


def test_one_long_row_stands_before_as_many_pairs_apart() -> None:
    row, apart = passage("乙丙丁戊"), passage("甲乙己丙丁戊")
    together, scattered = column("甲乙丙丁戊", "run", row, apart)
    assert together > scattered > 0.0


def test_passages_under_one_title_speak_for_each_other_and_those_without_a_title_do_not() -> None:
    asked = RerankQuestion(text="", terms=("甲", "乙"))
    one, other = RerankPassage(text="", terms=("甲",), title="山"), RerankPassage(text="", terms=("甲",), title="川")
    more = RerankPassage(text="", terms=("甲", "乙"), title="山")
    table = features(asked, [one, other, more])
    for name in ("same_title", "others_same_title"):
        assert table[0, FEATURES.index(name)] > table[1, FEATURES.index(name)], name
    untitled = features(asked, [RerankPassage(text="", terms=("甲",)) for _ in range(3)])
    assert not untitled[:, FEATURES.index("others_same_title")].any()
