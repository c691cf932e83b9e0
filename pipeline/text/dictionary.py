"""The user's own dictionary: a CSV file of words with readings, kinds and synonyms, checked with line numbers.

    word,reading,kind,synonyms
    保全推進課,ホゼンスイシンカ,department,保全課|設備保全課
    ガレリア号,,product,

Only `word` is needed. Kinds are word, product, department, person, place, and code: a code is found whole and exactly,
like the identifiers of the patterns. Synonyms are separated by `|`, and are words of their own, too.
"""

import csv
import hashlib
import io
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal, get_args

import msgspec

from pipeline.errors import InvalidConfiguration
from pipeline.text.identifiers import IdentifierPattern, Identifiers
from pipeline.text.normalize import fold
from pipeline.text.synonyms import USER_WEIGHT

Kind = Literal["word", "product", "department", "person", "place", "code"]
COLUMNS = ("word", "reading", "kind", "synonyms", "weight")
MOST_WORDS = 100_000
SHORTEST, LONGEST = 2, 64
"""Characters of a word, folded."""

_READING = re.compile(r"[ァ-ヺー・ ]+")
_HIRAGANA = {code: code + 0x60 for code in range(ord("ぁ"), ord("ゖ") + 1)}
_SPACES = re.compile(r"\s+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class UserWord(msgspec.Struct, frozen=True, array_like=True):
    """A word of the dictionary, folded."""

    word: str
    reading: str = ""
    kind: Kind = "word"
    synonyms: tuple[str, ...] = ()
    weight: float = USER_WEIGHT
    """Of its synonyms in a question."""


class UserDictionary(msgspec.Struct, frozen=True):
    """All words, in order of the file."""

    words: tuple[UserWord, ...] = ()

    @property
    def version(self) -> str:
        """Twelve hex digits that change with any word, whatever their order; empty without words."""
        if not self.words:
            return ""
        return hashlib.sha256(msgspec.json.encode(sorted(self.fingerprints().items()))).hexdigest()[:12]

    @property
    def headwords(self) -> dict[str, UserWord]:
        """Words and synonyms that are one word from now on; a synonym without a line of its own has no kind."""
        own = {word.word: word for word in self.words}
        return {s: UserWord(s) for word in self.words for s in word.synonyms} | own

    def fingerprints(self) -> dict[str, str]:
        """Return all that can change the analysis of a text, by headword."""
        return {
            text: hashlib.sha256(msgspec.json.encode((word.reading, word.kind))).hexdigest()[:8]
            for text, word in self.headwords.items()
        } | {
            f"={word.word}": hashlib.sha256(msgspec.json.encode((word.synonyms, word.weight))).hexdigest()[:8]
            for word in self.words
            if word.synonyms
        }

    def codes(self) -> list[IdentifierPattern]:
        """Return the words of kind code as patterns."""
        return [IdentifierPattern("dictionary", re.escape(word.word)) for word in self.words if word.kind == "code"]


def changed_words(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    """Return the words by which two dictionaries (as fingerprints) analyze a text differently, ordered.

    Synonyms act on questions alone, so a change of them changes no document.
    """
    return sorted(word for word in old.keys() | new.keys() if word[0] != "=" and old.get(word) != new.get(word))


def read_dictionary(path: Path, identifiers: Identifiers | None = None) -> UserDictionary:
    """Read and check a file. Raises InvalidConfiguration with file, line and reason.

    With `identifiers`, words that hold one are refused: identifiers are taken out before words are looked for.
    """
    try:
        text = path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        line = path.read_bytes()[: error.start].count(b"\n") + 1
        raise InvalidConfiguration(f"{path.name}:{line}: not UTF-8: save the file as UTF-8") from error
    except OSError as error:
        raise InvalidConfiguration(f"{path.name}: cannot be read: {error.strerror}") from error
    return parse_dictionary(path.name, text, identifiers)


def parse_dictionary(file: str, text: str, identifiers: Identifiers | None = None) -> UserDictionary:
    """Check the text of a file; see `read_dictionary`."""
    rows = _rows(file, text)
    words: dict[str, UserWord] = {}
    lines: dict[str, int] = {}
    for line, row in rows:
        try:
            word = _word(row, identifiers)
            if word.word in words:
                raise ValueError(f"{row['word'].strip()!r} is on line {lines[word.word]} already")
        except ValueError as error:
            raise InvalidConfiguration(f"{file}:{line}: {error}") from error
        words[word.word], lines[word.word] = word, line
        if len(words) > MOST_WORDS:
            raise InvalidConfiguration(f"{file}:{line}: a dictionary has at most {MOST_WORDS:,} words")
    return UserDictionary(tuple(words.values()))


def _rows(file: str, text: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield each row with its line; empty lines and those that begin with # are left out."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    header: list[str] | None = None
    line = 1
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells) and not cells[0].startswith("#"):
                if header is None:
                    header = _header(file, line, cells)
                elif len(cells) > len(header):
                    raise InvalidConfiguration(f"{file}:{line}: {len(cells)} columns, the header has {len(header)}")
                else:
                    yield line, dict(zip(header, cells, strict=False))
            line = reader.line_num + 1
    except csv.Error as error:
        raise InvalidConfiguration(f"{file}:{line}: not CSV: {error}") from error
    if header is None:
        raise InvalidConfiguration(f"{file}: is empty: the first line names the columns, {','.join(COLUMNS[:4])}")


def _header(file: str, line: int, cells: list[str]) -> list[str]:
    names = [cell.strip().lower() for cell in cells]
    unknown = [name for name in names if name not in COLUMNS]
    if unknown or "word" not in names or len(set(names)) < len(names):
        what = f"{unknown[0]!r} is no column" if unknown else "the column `word` is needed, and each only once"
        raise InvalidConfiguration(f"{file}:{line}: {what}: the first line names the columns, {','.join(COLUMNS)}")
    return names


def _word(row: dict[str, str], identifiers: Identifiers | None) -> UserWord:
    kind = row.get("kind", "").strip().lower() or "word"
    if kind not in get_args(Kind):
        raise ValueError(f"{kind!r} is no kind: {', '.join(get_args(Kind))}")
    word = _folded(row["word"], "the word")
    if kind != "code":
        _refuse_codes(word, identifiers)
    synonyms = dict.fromkeys(_folded(s, "a synonym") for s in row.get("synonyms", "").split("|") if s.strip())
    if word in synonyms:
        raise ValueError(f"{row['word'].strip()!r} is its own synonym")
    return UserWord(word, _reading(row.get("reading", "")), kind, tuple(synonyms), _weight(row.get("weight", "")))  # type: ignore[arg-type]


def _folded(text: str, what: str) -> str:
    if _CONTROL.search(text):
        raise ValueError(f"{what} holds a control character")
    word = _SPACES.sub(" ", fold(text)[0]).strip()
    if not any(map(str.isalnum, word)):
        raise ValueError(f"{what} is empty" if not word else f"{what} {text.strip()!r} holds no letter or digit")
    if not SHORTEST <= len(word) <= LONGEST:
        raise ValueError(f"{what} {text.strip()!r} has {len(word)} characters, not {SHORTEST} to {LONGEST}")
    return word


def _refuse_codes(word: str, identifiers: Identifiers | None) -> None:
    found = identifiers.find_folded(word) if identifiers else []
    if found:
        raise ValueError(
            f"{word!r} holds the identifier {found[0].key!r}, which is found before words are: give it the kind code"
        )


def _reading(text: str) -> str:
    reading = fold(text.strip())[0].translate(_HIRAGANA)
    if reading and not _READING.fullmatch(reading):
        raise ValueError(f"the reading {text.strip()!r} is not in kana")
    return reading


def _weight(text: str) -> float:
    try:
        weight = float(text) if text.strip() else USER_WEIGHT
    except ValueError:
        weight = 0.0
    if not 0 < weight <= 1:
        raise ValueError(f"the weight {text.strip()!r} is no number above 0 and up to 1")
    return weight
