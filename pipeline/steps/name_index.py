"""Names that records declare, found in texts.

A name matches only as a word of its own. Japanese has no spaces, so the runs of one script decide:
- ASCII letters and digits, and katakana: never inside a longer run of the same (クレーン not in クレーンゲーム).
- Kanji: a name of four characters or more may touch other kanji (保全課森本亮介); a shorter one only
  where the neighbour is an office, an honorific or the like (物流課田中, 田中課長), so 田中 is not found
  in 田中島, nor 山根 in 大山根.
- Hiragana: particles follow a name, so only the left side counts.
Of names that overlap, the one that starts first and then the longest is taken.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable

import msgspec

from pipeline.ports.publishing import DeclaredName
from pipeline.text.normalize import fold, name_form
from schemas.knowledge import EntityRef

SHORTEST, LONGEST = 2, 300
MAX_MEANINGS = 3
"""A name of more entities than this tells nothing."""

_SPECIFIC = 4
"""Characters from which on a name may touch kanji."""
_BEFORE_NAME = frozenset("課部室係班社長員者任氏様殿同元前旧新故当各両")
_AFTER_NAME = re.compile(
    r"氏|様|殿|君|嬢|先生|(?:副|次|前|元|新)?(?:社長|会長|部長|課長|係長|班長|室長|所長|工場長|店長|主任|主査|主事|次長|専務|常務|取締役|監査役|"
    r"部員|課員|班員|作業員|運転士|技師|教授|弁護士|医師)|本人|自身|両|宛|内|前|側|製|産|用|等|他|方|発|着|行|間"
)


class NameMatch(msgspec.Struct, frozen=True):
    """A declared name in a folded text: its span there, and the entities it stands for."""

    start: int
    end: int
    entities: tuple[EntityRef, ...]


class NameIndex:
    """All declared names of a generation; the result depends on the set of names only."""

    def __init__(self, declared: Iterable[DeclaredName] = ()) -> None:
        """Build the index; names that are too short, too long, or of more than MAX_MEANINGS entities are left out."""
        self._entities: dict[str, tuple[EntityRef, ...]] = {}
        self._names: Counter[tuple[str, int]] = Counter()
        """How many names have these first characters and this length."""
        self._lengths: dict[str, list[int]] = {}
        """By first characters, the longest first."""
        entities: dict[str, set[tuple[str, str]]] = defaultdict(set)
        for one in declared:
            entities[one.name].add((one.family, one.key))
        for name, found in entities.items():
            self.replace(name, found)

    def replace(self, name: str, entities: Iterable[tuple[str, str]]) -> None:
        """Let a name stand for these (family, key) and no others; for none of them, it is forgotten."""
        found = tuple(EntityRef(family, key, name) for family, key in sorted(set(entities)))
        good = SHORTEST <= len(name) <= LONGEST and not name.isdecimal() and 0 < len(found) <= MAX_MEANINGS
        self._count(name, good - (name in self._entities))
        if good:
            self._entities[name] = found
        else:
            self._entities.pop(name, None)

    def _count(self, name: str, more: int) -> None:
        if not more:
            return
        head = name[:SHORTEST]
        self._names[head, len(name)] += more
        lengths = set(self._lengths.get(head, ())) | {len(name)}
        there = sorted((length for length in lengths if self._names[head, length]), reverse=True)
        if there:
            self._lengths[head] = there
        else:
            del self._lengths[head]
        if not self._names[head, len(name)]:
            del self._names[head, len(name)]

    def __len__(self) -> int:
        return len(self._entities)

    def find_folded(self, folded: str) -> list[NameMatch]:
        """Return the names in a folded text in reading order, none overlapping."""
        if not self._entities:
            return []
        form, origins = name_form(folded)
        found: list[NameMatch] = []
        at = 0
        while at <= len(form) - SHORTEST:
            match = self._at(form, origins, folded, at)
            if match is None:
                at += 1
                continue
            found.append(match[0])
            at += match[1]
        return found

    def find(self, text: str) -> list[NameMatch]:
        """Return the names in a text; spans are in the folded text."""
        return self.find_folded(fold(text)[0])

    def _at(self, form: str, origins: list[int], folded: str, at: int) -> tuple[NameMatch, int] | None:
        for length in self._lengths.get(form[at : at + SHORTEST], ()):
            entities = self._entities.get(form[at : at + length])
            if entities is None or at + length > len(form):
                continue
            start, end = origins[at], origins[at + length]
            end -= len(folded[start:end]) - len(folded[start:end].rstrip(" "))
            if _stands_alone(folded, start, end):
                return NameMatch(start, end, entities), length
        return None


def _stands_alone(text: str, start: int, end: int) -> bool:
    left_ok = start == 0 or _left_edge(text, start, end - start)
    return left_ok and (end == len(text) or _right_edge(text, end, end - start))


def _left_edge(text: str, start: int, length: int) -> bool:
    before, script = text[start - 1], _script(text[start])
    if script == "ascii" and before in "-_" and start > 1 and _script(text[start - 2]) == "ascii":
        return False
    if _script(before) != script or script == "other":
        return True
    return script == "kanji" and (length >= _SPECIFIC or before in _BEFORE_NAME)


def _right_edge(text: str, end: int, length: int) -> bool:
    script = _script(text[end - 1])
    if script == "ascii" and text[end] in "-_" and end + 1 < len(text) and _script(text[end + 1]) == "ascii":
        return False
    if _script(text[end]) != script or script in ("hiragana", "other"):
        return True
    return script == "kanji" and (length >= _SPECIFIC or bool(_AFTER_NAME.match(text, end)))


def _script(char: str) -> str:
    if char.isascii():
        return "ascii" if char.isalnum() else "other"
    if "ァ" <= char <= "ヿ":
        return "other" if char == "・" else "katakana"
    if "ぁ" <= char <= "ゟ":
        return "hiragana"
    is_kanji = "一" <= char <= "鿿" or "㐀" <= char <= "䶿" or char in "々〇〆" or ord(char) >= 0x20000
    return "kanji" if is_kanji else "other"
