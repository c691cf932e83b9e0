"""A hard set of identifiers: for each, texts with near-duplicates and with its parts scattered, and all typed forms."""

import random
import re
from collections.abc import Iterator
from typing import Any

import msgspec

CODES = (
    "F-17", "K-08", "ABC-1234-X", "MR-2291", "HD-10423", "AR-2025-004", "BRK-FB20-01", "SM-210", "WR-14-2.5",
    "R2025-0034",
    "ERR_TIMEOUT_504", "ERR_DISK_FULL", "E-4021", "ORA-00942", "HTTP_502", "user_id", "MAX_RETRY_COUNT",
    "v2.3.1", "10.0.12", "1.2.3-rc1", "ver4.11", "192.168.1.10",
    "FB20", "ISO9001", "X100", "A4", "PC200", "JIS-B-8821", "SUS304", "M12",
    "03-3456-7890", "0120-444-113", "090-1234-5678", "2024-0117-03", "4571-20-8",
    "総務第12号", "人発第305号", "TX-88B", "QC-7", "LOT-240611-B", "CVE-2024-31497", "KB5034441", "NR/2025/0456",
)  # fmt: skip
HYPHENS = "\u2010\u2011\u2012\u2013\u2212\uff0d"
FILLERS = (
    "点検の結果に異常はなかった。",
    "担当者が部品を交換した。",
    "翌日に試運転を行い、記録を残した。",
    "原因は調査中である。",
)
TOPICS = ("校正", "洗浄", "梱包", "塗装", "配線", "給油")


class Typed(msgspec.Struct, frozen=True):
    """A question, and the documents that hold its identifier."""

    question: str
    form: str
    right: frozenset[str]


def _near(code: str, chance: random.Random) -> list[str]:
    """Return other identifiers that look like this one."""
    digits = [n for n, c in enumerate(code) if c.isdigit()]
    found = [code + "0", code + "-2", "A" + code if code[0].isascii() and code[0].isalpha() else "1" + code]
    for n in chance.sample(digits, min(2, len(digits))):
        found.append(code[:n] + str((int(code[n]) + chance.randint(1, 9)) % 10) + code[n + 1 :])
    if len(digits) > 1 and code[digits[-1]] != code[digits[-2]]:
        turned = list(code)
        turned[digits[-1]], turned[digits[-2]] = turned[digits[-2]], turned[digits[-1]]
        found.append("".join(turned))
    if "第" in code:
        found = [code.replace("第", "第1"), code.replace("号", "0号"), "新" + code, code.replace("第", "次第")]
    return [one for one in found if one.lower() not in {code.lower() for code in CODES}]


def texts() -> dict[str, str]:
    """Return document key to text."""
    chance = random.Random(20250708)
    found: dict[str, str] = {}
    for n, code in enumerate(CODES):
        filler = chance.choice(FILLERS)
        for m, topic in enumerate(chance.sample(TOPICS, 2)):
            found[f"right-{n}-{m}"] = f"{code}の{topic}を実施した。{filler}" * (1 + m)
        for m, near in enumerate(_near(code, chance)):
            found[f"near-{n}-{m}"] = f"{near}を見た。{near}の点検、{near}の{chance.choice(TOPICS)}。{filler}"
        parts = [part for part in re.split(r"[-_./]|(?<=[A-Za-z])(?=\d)|第", code) if part]
        found[f"parts-{n}"] = "、".join(f"{part}と{chance.choice(TOPICS)}" for part in parts * 3) + f"。{filler}"
    return found


def events() -> list[dict[str, Any]]:
    """Return the texts as events."""
    return _as_events(texts())


def _as_events(found: dict[str, str]) -> list[dict[str, Any]]:
    record = {"acl": ["all"], "updated_at": "2025-07-08T09:00:00+09:00"}
    return [
        {
            "source": "codes",
            "collection": "notes",
            "key": key,
            "op": "upsert",
            "position": 1,
            "record": {**record, "title": f"記録{n}", "body": body},
        }
        for n, (key, body) in enumerate(found.items())
    ]


def crowd() -> list[dict[str, Any]]:
    """Return as events 140 short texts with each of two codes, as many with the words, and long ones with both."""
    rest = "担当者が部品を確認した。翌日に試運転を行い、記録を残した。" * 6
    found = {f"{code}-{n}": f"{code}の点検。" for code in ("LK-17", "QZ-5") for n in range(140)}
    found |= {f"word-{n}": "制動輪の摩耗。制動輪。" for n in range(140)}
    found["code-and-word"] = f"{rest}LK-17の制動輪が摩耗していた。{rest}"
    found["both-codes"] = f"{rest}LK-17とQZ-5をつないだ。{rest}"
    return _as_events(found)


def questions() -> Iterator[Typed]:
    """Yield each identifier in all forms in which people type it."""
    chance = random.Random(4711)
    for n, code in enumerate(CODES):
        right = frozenset({f"codes/notes/right-{n}-0", f"codes/notes/right-{n}-1"})
        full_width = "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in code)
        dash = chance.choice(HYPHENS)
        forms = {
            "bare": code,
            "question": f"{code}について、何か分かっていることはありますか?",
            "in a sentence": f"昨日の{code}の点検で見つかった異常の原因を教えて",
            "full width": full_width,
            "full width in a question": f"{full_width}の記録はどこ?",
            "lower case": code.lower(),
            "upper case": code.upper(),
            "other hyphens": code.replace("-", dash),
            "brackets": f"「{code}」",
        }
        for form, question in forms.items():
            yield Typed(question, form, right)


def questions_with_a_topic() -> Iterator[Typed]:
    """Yield questions whose words tell which of the two documents with the identifier is meant."""
    found = texts()
    for n, code in enumerate(CODES):
        for m in (0, 1):
            topic = next(topic for topic in TOPICS if topic in found[f"right-{n}-{m}"])
            yield Typed(f"{code}の{topic}はいつか", "topic", frozenset({f"codes/notes/right-{n}-{m}"}))
