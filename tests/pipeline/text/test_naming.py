"""By which number a document names itself where it begins, and by which it does not."""

import time

import pytest

from pipeline.text.naming import BEGINNING, names_itself, years_before
from tests.language.pairs import analysis


def own(text: str) -> str:
    """Return the identifier by which a text that begins so names itself, or nothing."""
    beginning = text[:BEGINNING]
    tokens = analysis().terms.tokens_with_offsets(beginning)
    numbers = {token.term for token in tokens if token.kind == "identifier"}
    return "".join(number for number in sorted(numbers) if names_itself(beginning, tokens, number))


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("# 事故報告書(確定版)\n\n文書番号 AR-2025-002/報告日 2025年3月14日/報告者 第一製造課\n", "ar-2025-002"),
        ("文書番号 IT-MAN-07 第6版/対象:基幹サーバ S-01\n\n## 1. 連絡体制", "it-man-07"),
        ("○湊川市火災予防条例\n令和3年3月25日\n条例第20号\n\n改正 令和5年3月1日条例第8号\n", "条例第20号"),
        ("(平成十七年三月三十一日規則第二十一号)\n\n第1条 この規則は", "規則第21号"),
        ("業務委託契約書（契約番号：Ｋ－２０２４－０３１）\n\n甲と乙は、", "k-2024-031"),
        ("| 文書番号 | QP-17 |\n| --- | --- |\n| 版 | 3 |\n", "qp-17"),
        ("- 文書番号: MM-2025-0701\n- 版: 3\n", "mm-2025-0701"),
        ("MR-2291:K-08 ブレーキの調整。作業区分は保全。担当は田村。", "mr-2291"),
        ("HD-10423 印刷できない\n\n電話で受けた。", "hd-10423"),
        ("【AR-2025-004】労働災害報告書\n", "ar-2025-004"),
        ("受付番号 HD-10423 / 関連 HD-10432\n", "hd-10423"),
    ],
)
def test_a_number_in_the_head_names_the_document(text: str, number: str) -> None:
    assert own(text) == number


@pytest.mark.parametrize(
    "text",
    [
        "# 定例会議\n\n- MR-2291 処理済み\n- MR-2292 処理済み\n",
        "# 定例会議\n\n1. MR-2291 処理済み\n",
        "# 定例会議\n\n・令和6年条例第20号 審議\n",
        "対象 MR-2291、MR-2292、MR-2293\n",
        "対象:MR-2291 ブレーキ、MR-2292 滑車\n",
        "範囲 MR-2291〜MR-2299\n",
        "MR-2291 ブレーキ\nMR-2292 滑車\n",
        "| 番号 | 件名 |\n| --- | --- |\n| MR-2291 | ブレーキ |\n",
        "昨日10時40分ごろ、第二工場でF-17が止まった。",
        "F-17が逸走し、協力会社の社員に当たった。",
        "K-08天井クレーンから先週より異音がする。担当に知らせた。",
        "点検の手順は\nMM-2025-0701 によること。",
        "湊川市火災予防条例(令和6年条例第20号)の一部を次のように改正する。",
        "業務委託契約書(契約番号 K-2024-031)に基づく検収書\n",
        "停電・地震時の初動マニュアル\n\n震度5弱以上で、全員が作業を止める。",
        "",
    ],
)
def test_what_is_mentioned_or_listed_does_not(text: str) -> None:
    assert own(text) == ""


@pytest.mark.parametrize(
    ("text", "years"),
    [
        ("令和6年条例第20号", {"2024"}),
        ("令和6年3月25日\n条例第20号", {"2024"}),
        ("平成17年の規則第21号", {"2005"}),
        ("令和6年の改正で、条例第20号", set()),
        ("条例第20号(令和6年)", set()),
    ],
)
def test_the_year_before_a_number_belongs_to_it(text: str, years: set[str]) -> None:
    tokens = analysis().terms.tokens_with_offsets(text)
    (number,) = (token for token in tokens if token.kind == "identifier")
    assert years_before(text, tokens, number) == years


@pytest.mark.parametrize("between", ["及び", "並び", "の、", "・", " "])
def test_any_beginning_is_judged_at_once(between: str) -> None:
    text = f"MR-2291{between * 24}漢 MR-2292"
    tokens = analysis().terms.tokens_with_offsets(text)
    before = time.perf_counter()
    names_itself(text, tokens, "mr-2291")
    assert time.perf_counter() - before < 1
