"""Long documents of one build, which name themselves once by a number of their own; and others that mention them."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

_REST = (
    "この文書は、関係する部署の確認を受けたうえで発行し、改める必要が生じたときは所管の部署が改める。",
    "保管は紙と電子の両方で行い、古い版は回収して廃棄する。写しを作るときは、配付先の一覧に書き加える。",
    "不明な点があるときは、自分で判断せずに所管の部署へ問い合わせ、回答を記録に残してから先へ進む。",
    "様式は別に定める。期間を数えるときは初日を含めず、末日が休日に当たるときは翌日までとする。",
    "図と表は参考であり、文と食い違うときは文が優先する。略した語は最初に出る所でその意味を示す。",
)
_SHORTEST = 430
"""Characters of a part: so each is a passage of its own."""


class Part(msgspec.Struct, frozen=True):
    """A part of a document: what one asks, and the sentence that answers, with a place for what differs."""

    asked: str
    heading: str
    tells: str


class Kind(msgspec.Struct, frozen=True):
    """Documents of one build: keys, numbers as they stand in the text and as asked, titles, beginnings."""

    name: str
    numbers: Sequence[str]
    title: str
    begins: Callable[[str], str]
    parts: Sequence[Part]
    key: Callable[[int, str], str] = lambda n, _: f"{8400 + n}"
    asked: Sequence[str] = ()
    """As people type the numbers; empty: as they stand."""


class Asked(msgspec.Struct, frozen=True):
    """A question, and the start of the one passage that answers it."""

    kind: str
    question: str
    document: str
    tells: str


KINDS = (
    Kind(
        "ordinances",
        tuple(
            f"令和{date}\n条例第{number}号"
            for date, number in (("6年3月25日", 20), ("5年3月27日", 20), ("6年3月25日", 21), ("6年9月30日", 200))
        ),
        "施設の管理に関する条例",
        lambda number: f"○湊川市施設の管理に関する条例\n\n{number}\n\n改正 令和7年3月24日条例第8号\n\n",
        (
            Part("の過料はいくらか", "第5章 罰則", "許可を受けないで使用した者は、{n}万円以下の過料に処する。"),
            Part(" 使用料の減免", "第4章 使用料", "市長は、公益のために使うときは使用料を{n}割減免することができる。"),
        ),
        asked=("令和6年条例第20号", "令和五年条例第二十号", "条例第２１号", "条例第200号"),
    ),
    Kind(
        "manuals",
        ("MM-2025-0701", "MM-2025-0702", "MM-2025-0707", "MM-2025-0770", "MM-2025-0707-2"),
        "減速機の整備マニュアル",
        lambda number: f"# 減速機の整備マニュアル\n\n文書番号 {number} 第3版/発行 2025年7月7日/設備保全課\n\n",
        (
            Part(" トルク", "4. 組立て", "出力軸の締付けトルクは{n}5 N·mとし、対角に締める。"),
            Part("の点検周期は?", "6. 点検", "点検周期は{n}か月とし、油の温度が高いときは半分にする。"),
        ),
        asked=("MM-2025-0701", "mm-2025-0702", "ＭＭ－２０２５－０７０７", "MM‐2025‐0770", "MM-2025-0707-2"),
    ),
    Kind(
        "contracts",
        ("K-2024-031", "K-2024-032", "K-2024-310", "K-2025-031"),
        "業務委託契約書",
        lambda number: f"業務委託契約書(契約番号:{number})\n\n甲(委託者)と乙は、次の契約を結ぶ。\n\n",
        (
            Part("の委託料の支払期限", "第6条(支払)", "甲は、請求を受けた日から{n}0日以内に委託料を支払う。"),
            Part("を途中で解除するときの予告", "第11条(解除)", "解除するときは、{n}か月前までに書面で予告する。"),
        ),
    ),
    Kind(
        "specifications",
        ("SP-301", "SP-302", "SP-310", "SP-3010"),
        "油圧ポンプの仕様書",
        lambda _: "# 油圧ポンプの仕様書\n\n所管は設計課とする。\n\n",
        (
            Part("の最高使用圧力", "2. 性能", "最高使用圧力は{n}1 MPa、吐出し量は毎分40リットルとする。"),
            Part("で使える作動油", "3. 作動油", "作動油は粘度{n}2番の鉱物油を使い、水を含む油は使わない。"),
        ),
        key=lambda _, number: number,
    ),
    Kind(
        "procedures",
        ("総務第12号", "総務第13号", "総務第112号"),
        "文書の取扱い",
        lambda number: f"| 番号 | {number} |\n| --- | --- |\n| 所管 | 総務課 |\n\n",
        (
            Part("の保存年限", "4 保存", "保存年限は{n}年とし、起算日は完結した年度の翌年度の初日とする。"),
            Part("の決裁の区分", "5 決裁", "{n}00万円を超えるものは部長の決裁を受ける。"),
        ),
    ),
    Kind(
        "tickets",
        ("HD-10423", "HD-10432", "HD-11423"),
        "印刷できない",
        lambda number: f"{number}:印刷できない\n\n受付は電話。\n\n",
        (
            Part("の恒久対策", "対策", "恒久対策として、印刷の待ち行列を{n}分ごとに監視する。"),
            Part("で試したこと", "経過", "試したことは、{n}回の再起動と用紙の入替えである。"),
        ),
    ),
)  # fmt: skip


def _filled(text: str, turn: int) -> str:
    while len(text) < _SHORTEST:
        text += _REST[turn % len(_REST)]
        turn += 1
    return text


def _document(kind: Kind, n: int) -> str:
    parts = [_filled(f"{part.tells.format(n=n + 2)}", m) for m, part in enumerate(kind.parts)]
    headed = (f"## {part.heading}\n\n{text}" for part, text in zip(kind.parts, parts, strict=True))
    return "\n\n".join((kind.begins(kind.numbers[n]) + _filled("目的と適用の範囲を定める。", 2), *headed))


def documents() -> Iterator[tuple[str, str, str, str]]:
    """Yield collection, key, title and body."""
    for kind in KINDS:
        for n, number in enumerate(kind.numbers):
            yield kind.name, kind.key(n, number), kind.title, _document(kind, n)
    parts = "\n\n".join(f"## {n} 経過\n\n{_filled('交渉の経過を記す。', n)}" for n in (1, 2))
    for key in ("SEC-77", "8499"):
        yield (
            "secret",
            key,
            "覚書",
            f"覚書番号 SEC-{'78' if key == '8499' else '77'}\n\n{_filled('相手を定める。', 0)}\n\n{parts}",
        )
    yield from _mentions()


def _mentions() -> Iterator[tuple[str, str, str, str]]:
    """Yield documents that only mention numbers; their other parts hold what is asked of those, of other things."""
    apart = "\n\n".join(
        f"## その他 {m}\n\n{_filled(text, m)}"
        for m, text in enumerate(
            (
                "工具の締付けトルクを測る器具は、点検周期を過ぎたものが3本あった。",
                "駐輪場の使用料の減免と、期限後の過料について質問があった。",
                "清掃の委託料の支払期限と、解除の予告、文書の保存年限を調べる。",
                "最高使用圧力と作動油の一覧、印刷の恒久対策を次回に示す。",
            )
        )
    )
    listed = [number for kind in KINDS for number in kind.asked or kind.numbers]
    for m, some in enumerate((listed[:12], listed[8:])):
        bullets = "\n".join(f"- {number} 処理済み" for number in some)
        yield "minutes", f"list-{m}", f"定例会議の記録 {m}", f"# 定例会議\n\n{bullets}\n\n{apart}"
        yield "minutes", f"row-{m}", f"週報 {m}", f"対象 {'、'.join(some)}\n\n{apart}"
    for m, number in enumerate(listed):
        said = f"昨日10時40分ごろ、現場で{number}を見ながら作業し、途中で迷った者がいた。"
        yield "memos", f"memo-{m}", f"朝礼のメモ {m}", f"{_filled(said, m)}\n\n{apart}"
        begun = f"{number}の写しを配った。"
        yield "memos", f"begun-{m}", f"配付のメモ {m}", f"{_filled(begun, m)}\n\n{apart}"
    cited = "湊川市施設の管理に関する条例(令和6年条例第20号)の一部を次のように改正する。"
    yield (
        "ordinances",
        "amending",
        "条例の一部を改正する条例",
        f"令和7年3月24日\n条例第8号\n\n{_filled(cited, 0)}\n\n{apart}",
    )


def events() -> list[dict[str, Any]]:
    """Return all documents as events; what is in `secret` is not for all."""
    record = {"acl": ["all"], "updated_at": "2025-07-08T09:00:00+09:00"}
    hidden = {**record, "acl": ["legal"]}
    return [
        {
            "source": "numbers",
            "collection": collection,
            "key": key,
            "op": "upsert",
            "position": 1,
            "record": {**(hidden if collection == "secret" else record), "title": title, "body": body},
        }
        for collection, key, title, body in documents()
    ]


def questions() -> Iterator[Asked]:
    """Yield for each number what each part answers."""
    for kind in KINDS:
        for n, number in enumerate(kind.numbers):
            for part in kind.parts:
                asked = (kind.asked or kind.numbers)[n]
                key = f"numbers/{kind.name}/{kind.key(n, number)}"
                yield Asked(kind.name, asked + part.asked, key, part.tells.format(n=n + 2))
