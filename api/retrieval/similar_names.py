"""Names in memory, found by how they are written or read: whole, by their beginning, with a slip or two.

Distances are restricted Damerau-Levenshtein (optimal string alignment) by RapidFuzz: a letter left out, put in or
changed, or two exchanged. All names of about the same length are compared: of 50,000 names that takes milliseconds.
"""

import re
import threading
from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Literal

import msgspec
from rapidfuzz import process
from rapidfuzz.distance import OSA

from pipeline.text.normalize import name_key
from pipeline.text.readings import as_katakana, needs_reading, sound

How = Literal["same", "reading", "prefix", "spelling"]
_ORDER: dict[How, int] = {"same": 0, "reading": 1, "prefix": 2, "spelling": 3}
_MOST = 100
"""Names of each kind that are ranked."""
_MOST_BEGINNINGS = 5_000
"""Names with one beginning that are ranked: more than that begin so only where hardly anything was typed."""
_SHORTEST_SOUND = 2
_FEW = 200
"""Changes that are put into a sorted list one by one."""
_NO_DIGITS = re.compile(r"[^\d〇一二三四五六七八九十百千]+")
_ONE_SLIP, _TWO_SLIPS = 3, 6
"""Characters from which on one or two slips are forgiven."""


class Similar(msgspec.Struct, frozen=True):
    """A name that was found."""

    name: str
    entities: tuple[str, ...]
    """IRIs."""
    how: How
    slips: int


class _Texts:
    """Forms, or sounds, of names: by the whole, by the beginning, by likeness. A text may belong to several places."""

    def __init__(self) -> None:
        self.places: dict[str, set[int]] = {}
        self._by_length: dict[int, dict[str, str]] = {}
        self._sorted: list[str] = []
        self._unsorted: list[str] = []

    def add(self, text: str, place: int) -> None:
        if not text:
            return
        if text not in self.places:
            self._by_length.setdefault(len(text), {})[text] = text
            self._unsorted.append(text)
        self.places.setdefault(text, set()).add(place)

    def remove(self, text: str, place: int) -> None:
        """Remove; the sorted list may keep what is gone, and `starting` looks."""
        places = self.places.get(text, set())
        places.discard(place)
        if not places and self.places.pop(text, None) is not None:
            del self._by_length[len(text)][text]

    def starting(self, beginning: str) -> Iterator[str]:
        """Yield texts that begin so."""
        self._sort()
        for at in range(bisect_left(self._sorted, beginning), len(self._sorted)):
            text = self._sorted[at]
            if not text.startswith(beginning):
                return
            if text in self.places:
                yield text

    def near(self, wanted: str, most: int) -> Iterator[tuple[str, int]]:
        """Yield texts at most so many slips away, with the slips."""
        for length in range(len(wanted) - most, len(wanted) + most + 1) if most else ():
            some = self._by_length.get(length)
            found = process.extract(wanted, some, scorer=OSA.distance, score_cutoff=most, limit=_MOST) if some else ()
            for text, slips, _ in found:
                yield text, int(slips)

    def _sort(self) -> None:
        if len(self._unsorted) > _FEW or len(self._sorted) > 2 * len(self.places) + _FEW:
            self._sorted = sorted(self.places)
        else:
            for text in self._unsorted:
                at = bisect_left(self._sorted, text)
                if self._sorted[at : at + 1] != [text]:  # it may have been there before
                    insort(self._sorted, text)
        self._unsorted.clear()


class SimilarNames:
    """A set of (entity's IRI, name). Safe between threads."""

    def __init__(self) -> None:
        """Start empty."""
        self._lock = threading.Lock()
        self._places: dict[str, int] = {}
        self._names: dict[int, tuple[str, str, set[str]]] = {}
        """Name, form and IRIs by place."""
        self._forms, self._sounds = _Texts(), _Texts()
        self._heard: dict[int, str] = {}
        """Sounds by place."""
        self._next = 0

    def __len__(self) -> int:
        return len(self._places)

    def change(self, added: Iterable[tuple[str, str]], removed: Iterable[tuple[str, str]]) -> list[str]:
        """Add and remove (IRI, name); return the new names that hold kanji: `learn` their readings."""
        unread: list[str] = []
        with self._lock:
            for iri, name in removed:
                self._remove(iri, name)
            for iri, name in added:
                if self._add(iri, name) and needs_reading(name):
                    unread.append(name)
        return unread

    def learn(self, readings: Iterable[tuple[str, str]]) -> None:
        """Take (name, reading) of names that are there."""
        with self._lock:
            for name, reading in readings:
                if (place := self._places.get(name)) is not None:
                    self._hear(place, sound(reading))

    def find(self, text: str, reading: str, limit: int) -> list[Similar]:
        """Return names like this text, which is read so: the likest first, then the shortest."""
        form, its_sound = form_of(text), sound(reading)
        if not form:
            return []
        with self._lock:
            found = {**self._slips(form, its_sound), **self._whole(form, its_sound)}
            ranked = sorted(found.items(), key=lambda item: self._rank(*item))[:limit]
            return [
                Similar(self._names[place][0], tuple(sorted(self._names[place][2])), how, slips)
                for place, (how, slips) in ranked
            ]

    def _rank(self, place: int, found: tuple[How, int]) -> tuple[int, int, int, str]:
        how, slips = found
        name = self._names[place][0]
        return _ORDER[how], slips, len(name), name

    def _whole(self, form: str, its_sound: str) -> dict[int, tuple[How, int]]:
        """Return places of names that are written or read so, or begin so."""
        heard = its_sound if len(its_sound) >= _SHORTEST_SOUND else ""
        found: dict[int, tuple[How, int]] = {}
        for texts, wanted in ((self._sounds, heard), (self._forms, form)):
            for text in islice(texts.starting(wanted) if wanted else (), _MOST_BEGINNINGS):
                found.update(dict.fromkeys(texts.places[text], ("prefix", 0)))
        found.update(dict.fromkeys(self._sounds.places.get(heard, ()), ("reading", 0)))
        found.update(dict.fromkeys(self._forms.places.get(form, ()), ("same", 0)))
        return found

    def _slips(self, form: str, its_sound: str) -> dict[int, tuple[How, int]]:
        """Return places of names that are written or sound nearly so; their numbers must be the same."""
        found: dict[int, tuple[How, int]] = {}
        numbers = _NO_DIGITS.sub("", form)
        for texts, wanted in ((self._sounds, its_sound), (self._forms, form)):
            for text, slips in texts.near(wanted, _forgiven(wanted)):
                for place in texts.places[text]:
                    if slips < found.get(place, ("", slips + 1))[1] and numbers == self._numbers(place):
                        found[place] = ("spelling", slips)
        return found

    def _numbers(self, place: int) -> str:
        return _NO_DIGITS.sub("", self._names[place][1])

    def _add(self, iri: str, name: str) -> bool:
        place = self._places.get(name)
        if place is not None:
            self._names[place][2].add(iri)
            return False
        place = self._places[name] = self._next
        self._next += 1
        form = form_of(name)
        self._names[place] = name, form, {iri}
        self._forms.add(form, place)
        if not needs_reading(name):
            self._hear(place, sound(form))
        return True

    def _hear(self, place: int, its_sound: str) -> None:
        self._sounds.remove(self._heard.pop(place, ""), place)
        if its_sound:
            self._heard[place] = its_sound
            self._sounds.add(its_sound, place)

    def _remove(self, iri: str, name: str) -> None:
        place = self._places.get(name)
        if place is None:
            return
        self._names[place][2].discard(iri)
        if not self._names[place][2]:
            del self._places[name]
            self._forms.remove(self._names.pop(place)[1], place)
            self._hear(place, "")


def form_of(name: str) -> str:
    """Return what names that are written alike share: the key of the name, hiragana as katakana."""
    return as_katakana(name_key(name))


def _forgiven(text: str) -> int:
    """Return how many slips are forgiven: none of a short word, where each makes another word."""
    return 0 if len(text) < _ONE_SLIP else 1 if len(text) < _TWO_SLIPS else 2
