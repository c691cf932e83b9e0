"""Texts that no model may stumble over, and how one identifier is written."""

POISON = {
    "empty": "",
    "space": " \t\r\n\u3000",
    "lone surrogate": "前\ud800後\udfff",
    "control characters": "".join(map(chr, range(32))) + "\x7f\x85設備",
    "nul": "設備\0点検",
    "grows when normalized": "㍿" * 13_000,
    "grows most": "ﷺ" * 1_000,
    "emoji": "👩\u200d👩\u200d👧\u200d👦設備😀" * 20,
    "marks": "か\u3099" * 300 + "\u0301" * 300,
    "invisible": "設\u200b備\ufeff葛\U000e0100城\u00ad",
    "only symbols": "!?。、・「」()〜…※★" * 20,
    "one long word": "a" * 5_000,
    "one long number": "1-" * 3_000,
    "fts syntax": '"AND" OR NOT (NEAR/2) * ^ : {} - "" \'',
    "astral": "𠮷野家𩸽" * 50,
    "right to left": "\u202eפורקליפט",
}

LONG = "設備の点検を実施した。" * 1_900
"""62,700 bytes."""

F_17 = ["F-17", "f-17", "F‐17", "F‑17", "F–17", "F−17", "Ｆ－１７", "ｆ－１７", "Fー17", "F\u00ad-17"]
"""One identifier: other hyphens, full width, lower case, a soft hyphen in it."""

NOT_F_17 = ["F-170", "AF-17", "F-17-2", "F-17B", "XF-17", "F-1", "F-117", "G-17", "F-17.5", "F_17", "F-71"]
