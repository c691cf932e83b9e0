"""Writes schemas/synonyms/spellings.tsv: other ways of writing the words of Sudachi's dictionary, as index terms.

`python -m ops.sudachi_spellings` after a change of the pinned dictionary or of the terms, then `ops.sudachi_synonyms`;
it takes about two minutes. A line is what the analysis makes of a spelling, and the term of the word that it spells:

- okurigana left out, as the Cabinet's notice on okurigana (送り仮名の付け方, 1973, rules 2, 6 and 7)
  allows: 書込 for 書き込み;
- words with the same reading and the same kanji, which differ in okurigana alone;
- a noun in kana and in kanji, where one synonym group holds both and no other noun is read like them: うどん, 饂飩;
- the mark of a long vowel left out at the end (JIS Z 8301), where the dictionary knows only the parts: ペースメーカ;
- a word in katakana in its parts: データ・ベース, データ ベース;
- a loan word in the other spellings that the Cabinet's notice on them (外来語の表記, 1991) knows, and with large kana
  for small ones, as bank transfers and old records have them: コーディネータ and コージネータ, フォーム and フオーム;
- a name with ヶ that the dictionary does not have with ケ.

A spelling that is a word of its own, or that could be two words, is in no line.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path

import schemas
from ops.sudachi_lexicon import Word, words
from pipeline.text.morphemes import Morphemes, plain_term
from pipeline.text.normalize import fold
from pipeline.text.patterns import load_identifiers
from pipeline.text.spellings import Spellings
from pipeline.text.terms import TermAnalyzer

TARGET = Path(schemas.__file__).parent / "synonyms" / "spellings.tsv"
Terms = tuple[str, ...]
_OKURIGANA = re.compile("(?=.*[一-鿿].*[一-鿿])(?=.*[ぁ-ん])[一-鿿ぁ-ん]{3,8}")
_KANA_GROUP = re.compile("([ぁ-ん]+)")
_KANJI = re.compile("[一-鿿]+")
_HAN = re.compile("[一-鿿]")
_LAST = re.compile("([一-鿿])[ぁ-ん]*$")
_NUMBER_OR_CODE = re.compile("[0-9a-z]")
_KATAKANA = re.compile("[ァ-ヺー]{4,}")
_KATAKANA_PART = re.compile("[ァ-ヺー]{2,}")
_LARGE = str.maketrans("ァィゥェォッャュョ", "アイウエオツヤユヨ")
_E_ROW = "エケセテネヘメレゲゼデベペ"
_SOUNDS = tuple(
    (re.compile(pattern), other)
    for pattern, other in (
        ("ティ", "チ"), ("ディ", "ジ"), ("テュ", "チュ"), ("デュ", "ジュ"), ("シェ", "セ"), ("ジェ", "ゼ"),
        ("トゥ", "ツ"), ("(?<=[イキシチニヒミリギジビピエケセテネヘメレ])ア", "ヤ"),
        (f"(?<=[{_E_ROW}])ー", "イ"), (f"(?<=[{_E_ROW}])イ", "ー"),
    )
)  # fmt: skip
_MOST_PARTS = 3
_PLACE = re.compile("[一-鿿][ヶヵ][一-鿿]")
_AS_HIRAGANA = {code + 0x60: code for code in range(ord("ぁ"), ord("ゖ") + 1)}
_CONTENT = {"名詞", "形状詞", "動詞", "形容詞"}


class Found:
    """Collects spellings of words, and leaves out those of two words."""

    def __init__(self, lexicon: Iterable[Word]) -> None:
        """Take all words of the dictionary."""
        without = Morphemes(table=Spellings({}, {}, {}))  # the table that is there would change the terms
        self._analyzer = TermAnalyzer(load_identifiers(), morphemes=without)
        self.named: dict[str, list[Word]] = defaultdict(list)
        for word in lexicon:
            self.named[word.surface].append(word)
        self.known = {plain_term(word.normalized) for found in self.named.values() for word in found}
        """Terms of words: a spelling that gives one of them is that word's."""
        self.found: dict[Terms, set[str]] = defaultdict(set)

    def terms(self, text: str) -> Terms:
        """Return what the analysis makes of a text."""
        return self._analyzer.analyze(text).terms

    def parts(self, text: str) -> Terms:
        """Return the same without compounds."""
        return tuple(token.term for token in self._analyzer.tokens_with_offsets(text) if token.kind != "compound")

    def term(self, word: str) -> str:
        """Return the one term of a word; "" when it has several or none."""
        terms = self.terms(word)
        if len(terms) == 3 and _is_compound(word, terms):
            return terms[2]
        return terms[0] if len(terms) == 1 else ""

    def add(self, spelled: Terms, term: str) -> None:
        """Note that a spelling is of a word."""
        if any(map(_NUMBER_OR_CODE.search, (*spelled, term))):
            return
        if _HAN.search("".join(spelled)) and len(_HAN.findall("".join(spelled))) != len(_HAN.findall(term)):
            return  # something is missing that is no okurigana: 引っくり返す is not 引返す
        if term and term not in spelled and 1 <= len(spelled) <= _MOST_PARTS:
            self.found[spelled].add(term)

    def content(self) -> Iterator[Word]:
        """Yield common words in their dictionary form."""
        for found in self.named.values():
            for word in found:
                if word.pos[0] in _CONTENT and word.pos[1] != "固有名詞" and _in_dictionary_form(word):
                    yield word

    def lines(self) -> list[str]:
        """Return the file's lines."""
        clear = {spelled: next(iter(terms)) for spelled, terms in self.found.items() if len(terms) == 1}
        return [f"{' '.join(spelled)}\t{_last(clear, term)}" for spelled, term in sorted(clear.items())]


def without_okurigana(surface: str) -> Iterator[str]:
    """Yield the spellings with less okurigana: inside first, at the end only where none is left inside."""
    pieces = _KANA_GROUP.split(surface)
    last = pieces[-2] if pieces[-1] == "" else ""
    inside = pieces[:-2] if last else pieces
    choices = [[p] if n % 2 == 0 else [p[k:] for k in range(len(p) + 1)] for n, p in enumerate(inside)]
    for chosen in product(*choices):
        stem = "".join(chosen)
        whole = _KANJI.fullmatch(stem) is not None
        for ending in {last, *(last[k:] for k in range(1, len(last))), *([""] if whole else [])}:
            if stem + ending != surface:
                yield stem + ending


def okurigana(spellings: Found) -> None:
    """Add what is spelled with less okurigana."""
    for word in spellings.content():
        if not _OKURIGANA.fullmatch(word.surface) or not (term := spellings.term(word.surface)):
            continue
        noun = word.pos[0] in ("名詞", "形状詞")
        for spelled in set(without_okurigana(word.surface)):
            if not noun and not spelled.endswith(_LAST.search(word.surface).group()):  # type: ignore[union-attr]
                continue
            if any(other.reading != word.reading for other in spellings.named.get(spelled, ())):
                continue
            terms = spellings.parts(spelled)
            if term in spellings.terms(spelled):
                continue
            if len(terms) == 1 and not (noun and _may_be_one(terms[0], spelled, word, spellings)):
                continue
            if any(part[0] not in spelled for part in terms):  # 較 is read as やや: that may be written otherwise, too
                continue
            if len(terms) > 1 and not _ends_alike(word.surface, spelled, terms[-1], spellings):
                continue
            spellings.add(terms, term)


def _may_be_one(term: str, spelled: str, word: Word, spellings: Found) -> bool:
    """Say whether a spelling of one term may become the word's: not one that is a name, but for verbs of two (割込)."""
    found = spellings.named.get(spelled, ())
    name = any(other.pos[1] == "固有名詞" for other in found)
    if term != spelled or (term in spellings.known and not found):
        return False
    return not name or len(_KANA_GROUP.findall(word.surface)) > 1


def _ends_alike(surface: str, spelled: str, last: str, spellings: Found) -> bool:
    """Say whether a spelling's last part is the word's: 打固る reads as 固まる and is not 打ち固める."""
    match = _LAST.search(surface)
    if match is None:
        return False
    return spelled[-1] == match.group(1) or last == spellings.term(match.group())


def known_but_split(spellings: Found) -> None:
    """Add spellings that the dictionary has with their normalized form, where the analysis still sees parts (打切)."""
    for word in spellings.content():
        if word.normalized != word.surface and word.pos[0] == "名詞" and _KANJI.match(word.surface):
            terms = spellings.terms(word.surface)
            if len(terms) > 1 and _is_whole(word, spellings) and all(part[0] in word.surface for part in terms):
                spellings.add(terms, spellings.term(word.normalized))


def kana_and_kanji(spellings: Found) -> None:
    """Add nouns in kanji that are written in kana, too: うどん and 饂飩."""
    alike: dict[tuple[str, int], set[str]] = defaultdict(set)
    sounds: dict[str, set[str]] = defaultdict(set)
    for word in spellings.content():
        if word.pos[0] == "名詞":
            if _KANJI.search(word.surface):
                sounds[word.reading].add(word.normalized)
            for group in word.groups:
                alike[word.reading, group].add(word.surface)
    for (reading, _), surfaces in sorted(alike.items()):
        kana = spellings.term(reading) if {reading, reading.translate(_AS_HIRAGANA)} <= surfaces else ""
        kanji = {spellings.term(s) for s in surfaces if _KANJI.fullmatch(s)} - {""}
        kanji = {term for term in kanji if all(other.reading == reading for other in spellings.named.get(term, ()))}
        if kana == reading and len(kanji) == 1 and len(sounds[reading]) == 1:
            spellings.add((kana,), next(iter(kanji)))


def katakana(spellings: Found) -> None:
    """Add words in katakana in their parts, with and without the last long vowel."""
    for word in spellings.content():
        surface = word.surface
        if word.pos[0] != "名詞" or not _KATAKANA.fullmatch(surface) or not (term := spellings.term(surface)):
            continue
        if surface.endswith("ー") and surface[:-1] not in spellings.named:
            parts = spellings.terms(surface[:-1])
            if len(parts) > 1 or parts[0] not in spellings.known:
                spellings.add(parts, term)
        for cut in range(2, len(surface) - 1) if len(surface) > 4 else ():
            left, right = surface[:cut], surface[cut:]
            if _is_noun(left, spellings) and _is_noun(right, spellings):
                parts = (spellings.term(left), spellings.term(right))
                if all(map(_KATAKANA_PART.fullmatch, (*parts, term))):
                    spellings.add(parts, term)


def places(spellings: Found) -> None:
    """Add names with ヶ that the dictionary has, and not with the ケ that folding makes of it."""
    for found in list(spellings.named.values()):
        word = found[0]
        folded = fold(word.surface)[0] if word.pos[0] == "名詞" and _PLACE.search(word.surface) else word.surface
        if folded != word.surface and folded not in spellings.named:
            spellings.add(spellings.parts(folded), plain_term(fold(word.normalized)[0]))


def loan_words(spellings: Found) -> None:
    """Add other spellings of the same sounds in katakana."""
    for word in spellings.content():
        surface = word.surface
        if word.pos[0] != "名詞" or not _KATAKANA.fullmatch(surface) or not (term := spellings.term(surface)):
            continue
        if not _KATAKANA_PART.fullmatch(term):
            continue
        others = {pattern.sub(other, surface) for pattern, other in _SOUNDS} | {surface.translate(_LARGE)}
        for spelled in others - {surface}:
            terms = spellings.terms(spelled)
            if spelled not in spellings.named and (len(terms) > 1 or terms[0] not in spellings.known):
                spellings.add(terms, term)


def _is_noun(word: str, spellings: Found) -> bool:
    return any(w.pos[:2] == ("名詞", "普通名詞") for w in spellings.named.get(word, ()))


def _is_compound(word: str, terms: Terms) -> bool:
    return len(terms[2]) > max(len(terms[0]), len(terms[1])) and terms[2][:1] == word[:1]


def _is_whole(word: Word, spellings: Found) -> bool:
    return len({other.normalized for other in spellings.named[word.surface] if other.pos[0] in _CONTENT}) == 1


def _in_dictionary_form(word: Word) -> bool:
    return word.pos[5] in ("*", "終止形-一般")


def _last(clear: dict[Terms, str], term: str) -> str:
    """Follow a term that has another usual form itself."""
    seen = {term}
    while (after := clear.get((term,))) and after not in seen:
        term = after
        seen.add(term)
    return term


def main() -> None:
    """Write the file."""
    spellings = Found(words())
    for collect in (okurigana, known_but_split, kana_and_kanji, katakana, loan_words, places):
        before = len(spellings.found)
        collect(spellings)
        print(f"{collect.__name__}: {len(spellings.found) - before}")
    lines = spellings.lines()
    TARGET.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{len(lines)} spellings in {TARGET}, {sum(len(t) > 1 for t in spellings.found.values())} are left out")


if __name__ == "__main__":
    main()
