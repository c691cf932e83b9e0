"""Made-up maintenance reports of any number, the same for the same seed. For sizes and times, never for quality."""

import random
from collections.abc import Iterator
from typing import Any

SITES = ("第一工場", "第二工場", "東棟", "西棟", "出荷場", "資材倉庫", "検査室", "塗装場")
KINDS = ("搬送機", "圧縮機", "旋盤", "乾燥炉", "巻取機", "冷却塔", "充填機", "洗浄機", "研削盤", "集塵機")
PARTS = ("軸受", "駆動ベルト", "油圧ホース", "近接センサー", "減速機", "電磁弁", "冷却ファン", "制御基板", "パッキン")
SIGNS = ("異音", "振動の増加", "温度上昇", "油漏れ", "停止", "速度の低下", "表示の乱れ", "圧力低下", "空転")
CAUSES = ("摩耗", "締結の緩み", "潤滑不足", "経年劣化", "異物の混入", "配線の接触不良", "設定値の誤り", "芯ずれ")
ACTIONS = ("部品を交換した", "増し締めを行った", "清掃と給脂を行った", "設定値を見直した", "配線をやり直した")
PEOPLE = ("青木", "石井", "上田", "遠藤", "大野", "金子", "工藤", "坂本", "清水", "高田", "土屋", "中川")


def sentence(chance: random.Random, machine: str) -> str:
    """Return one sentence about a machine."""
    pick = chance.choice
    return pick(
        (
            f"{pick(SITES)}の{pick(KINDS)}{machine}で{pick(SIGNS)}が見られたため、{pick(PARTS)}を点検した。",
            f"{pick(PARTS)}の{pick(CAUSES)}が原因と判断し、{pick(ACTIONS)}。",
            f"試運転では{pick(SIGNS)}は再発せず、測定値は{chance.randint(10, 99)}.{chance.randint(0, 9)}であった。",
            f"担当の{pick(PEOPLE)}は、次回の点検で{pick(PARTS)}の{pick(CAUSES)}を確認するよう申し送った。",
            f"{pick(SITES)}では同じ型の{pick(KINDS)}でも{pick(SIGNS)}が{chance.randint(2, 9)}件報告されている。",
            f"交換した{pick(PARTS)}は{chance.randint(2, 60)}か月使用しており、{pick(CAUSES)}が進んでいた。",
        )
    )


def event(number: int, seed: int, *, characters: int = 380, position: int = 1) -> dict[str, Any]:
    """Return a native event of about `characters` characters of body."""
    chance = random.Random(f"{seed}/{number}/{position}")
    machine = f"Q-{chance.randint(100, 999)}"
    body = ""
    while len(body) < characters:
        body += sentence(chance, machine)
    return {
        "source": "bench",
        "collection": "reports",
        "key": f"B-{number:06d}",
        "position": position,
        "occurred_at": "2025-04-01T09:00:00+09:00",
        "record": {
            "title": f"{machine} {chance.choice(KINDS)}の点検報告 {number}",
            "body": body,
            "fields": {"machine": machine},
            "acl": ["public"],
        },
    }


def events(count: int, seed: int, *, characters: int = 380, position: int = 1) -> Iterator[dict[str, Any]]:
    """Yield `count` events."""
    return (event(n, seed, characters=characters, position=position) for n in range(count))
