"""Japanese analysis with Sudachi (terms) and GiNZA (candidate mentions), in worker processes."""

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from importlib.metadata import version
from importlib.resources import files
from typing import Any

import msgspec
import yaml

from pipeline.model_workers.pool import WorkerPool
from pipeline.model_workers.process import Definition
from pipeline.model_workers.queue import JobKind
from pipeline.text.identifiers import Identifiers
from pipeline.text.lexicon import LexicalAnalysis, Lexicon, compiled
from pipeline.text.morphemes import open_dictionary
from pipeline.text.normalize import NORMALIZER_VERSION, name_key, without_surrogates
from pipeline.text.terms import TERMS_VERSION, pieces
from schemas.change_event import Lane
from schemas.document import Analysis, AnalyzedText, Token
from schemas.knowledge import Mention

ANALYZER_VERSION = "1"
"""Raise it when the same text gets other mentions."""

_MODEL = "ja_ginza"
_UNUSED = ["parser", "attribute_ruler", "morphologizer", "compound_splitter", "bunsetu_recognizer"]
_PIECE, _SMALL_PIECE = 8_000, 600
"""Characters given to GiNZA at once; the small size when a piece grows under NFKC (at most 18 times, 3 bytes each)."""
_MAX_BYTES = 40_000
"""Below Sudachi's limit of 49,149."""
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_EDGES = " \t\r\n\u3000、。,.・:;「」『』()\uff08\uff09[]【】<>\"'#*-"


class GinzaAnalyzer:
    """Implements `pipeline.ports.models.Analyzer`."""

    def __init__(self, pool: WorkerPool, lexicon: Lexicon) -> None:
        """Register with the pool; loads nothing here."""
        settings = msgspec.msgpack.encode(lexicon)
        here = __name__
        self._tokens = JobKind(
            Definition("tokens", f"{here}:load_tokens", settings),
            msgspec.msgpack.Decoder(Analysis).decode,
            batch_characters=4_000,
            quick=True,
        )
        self._mentions = JobKind(
            Definition("mentions", f"{here}:load_mentions", settings),
            msgspec.msgpack.Decoder(tuple[Mention, ...]).decode,
            batch_characters=600,
        )
        self._questions = JobKind(
            Definition("questions", f"{here}:load_questions", settings),
            msgspec.msgpack.Decoder(AnalyzedText).decode,
            batch_characters=4_000,
            quick=True,
        )
        self._places = JobKind(
            Definition("places", f"{here}:load_places", settings),
            msgspec.msgpack.Decoder(list[Token]).decode,
            batch_characters=4_000,
            quick=True,
        )
        self._readings = JobKind(
            Definition("readings", f"{here}:load_readings", settings),
            msgspec.msgpack.Decoder(str).decode,
            batch_characters=4_000,
            quick=True,
        )
        self._pool = pool
        self._open = True
        pool.register(self._tokens, self._mentions, self._questions, self._places, self._readings)
        self.version = _version(lexicon)
        self.dictionary = lexicon.dictionary.version

    async def tokens(self, texts: Sequence[str], *, lane: Lane = "live") -> list[Analysis]:
        """Return terms, bigrams and identifiers of each text."""
        return await self._pool.run(self._tokens, texts, lane)

    async def mentions(self, texts: Sequence[str], *, lane: Lane = "live") -> list[tuple[Mention, ...]]:
        """Return the candidate mentions of each text besides its identifiers."""
        return await self._pool.run(self._mentions, texts, lane)

    async def questions(self, texts: Sequence[str]) -> list[AnalyzedText]:
        """Return tokens, and what to ask a lexical index, of each text."""
        return await self._pool.run(self._questions, texts)

    async def places(self, texts: Sequence[str]) -> list[list[Token]]:
        """Return the terms of each text with their spans."""
        return await self._pool.run(self._places, texts)

    async def readings(self, texts: Sequence[str]) -> list[str]:
        """Return how each text is read."""
        return await self._pool.run(self._readings, texts)

    async def close(self) -> None:
        """Leave the pool; the last user stops it."""
        if self._open:
            self._open = False
            await self._pool.release()


def load_tokens(settings: bytes) -> Callable[[Sequence[str]], list[bytes]]:
    """Return the function of kind `tokens`. Runs in a worker."""
    analyze = _lexical(settings).terms.analyze
    encode = msgspec.msgpack.Encoder().encode
    return lambda texts: [encode(analyze(text)) for text in texts]


def load_questions(settings: bytes) -> Callable[[Sequence[str]], list[bytes]]:
    """Return the function of kind `questions`. Runs in a worker."""
    lexical = _lexical(settings)
    analyze, form = lexical.terms.analyze, lexical.questions.form
    encode = msgspec.msgpack.Encoder().encode
    return lambda texts: [encode(AnalyzedText(analyze(text), form(text))) for text in texts]


def load_places(settings: bytes) -> Callable[[Sequence[str]], list[bytes]]:
    """Return the function of kind `places`. Runs in a worker."""
    places = _lexical(settings).terms.tokens_with_offsets
    encode = msgspec.msgpack.Encoder().encode
    return lambda texts: [encode(places(text)) for text in texts]


def load_readings(settings: bytes) -> Callable[[Sequence[str]], list[bytes]]:
    """Return the function of kind `readings`. Runs in a worker."""
    read = _lexical(settings).readings.of
    encode = msgspec.msgpack.Encoder().encode
    return lambda texts: [encode(read(text)) for text in texts]


@lru_cache(maxsize=1)
def _lexical(settings: bytes) -> LexicalAnalysis:
    """Compile a lexicon once for documents and questions of a worker."""
    return msgspec.msgpack.decode(settings, type=Lexicon).analyzer()


def load_mentions(settings: bytes) -> Callable[[Sequence[str]], list[bytes]]:
    """Return the function of kind `mentions`. Runs in a worker; takes about two seconds and 370 MB."""
    import spacy

    nlp: Any = spacy.load(_MODEL, exclude=_UNUSED)
    lexicon = msgspec.msgpack.decode(settings, type=Lexicon)
    use_dictionary(nlp, lexicon)
    identifiers = lexicon.identifiers
    families = read_families()
    encode = msgspec.msgpack.Encoder().encode

    def mentions(texts: Sequence[str]) -> list[bytes]:
        # One text at a time: batches are 5 % faster, but their sums round differently, and the
        # result must be a function of the text alone. The zone keeps the vocabulary from growing.
        with nlp.memory_zone():
            return [encode(_mentions(nlp, text, identifiers, families)) for text in texts]

    return mentions


def use_dictionary(nlp: Any, lexicon: Lexicon) -> None:
    """Let a pipeline know the words of the user's dictionary, if there are any."""
    if own := compiled(lexicon.dictionary):
        tokenizer = nlp.tokenizer
        tokenizer.tokenizer = open_dictionary(own).create(tokenizer.split_mode or "A")


def read_families() -> dict[str, str]:
    """Return the family of each label that is kept."""
    text = files("schemas").joinpath("patterns/ner_families.yaml").read_text("utf-8")
    families: dict[str, list[str]] = yaml.safe_load(text)["families"]
    return {label: family for family, labels in families.items() for label in labels}


def _mentions(nlp: Any, text: str, identifiers: Identifiers, families: dict[str, str]) -> tuple[Mention, ...]:
    found = [
        mention
        for start, piece in _pieces(without_surrogates(text))
        for entity in nlp(_CONTROL.sub(" ", piece)).ents
        if (family := families.get(entity.label_))
        for mention in _mention(text, start + entity.start_char, start + entity.end_char, family)
    ]
    codes = [(i.start, i.end) for i in identifiers.find(text)] if found else []
    return tuple(m for m in found if not any(start <= m.start and m.end <= end for start, end in codes))


def _mention(text: str, start: int, end: int, family: str) -> list[Mention]:
    """Trim a span; drop it when it crosses a line or holds too little to be a name."""
    surface = text[start:end]
    start += len(surface) - len(surface.lstrip(_EDGES))
    surface = surface.strip(_EDGES)
    key = name_key(surface)
    shortest = 1 if family == "person" else 2
    if "\n" in surface or "\r" in surface or len(key) < shortest or not any(map(str.isalpha, key)):
        return []
    return [Mention(start, start + len(surface), surface, family, key, "ner", 0.5)]


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    """Cut so that each piece is below Sudachi's limit before and after its own normalization."""
    for start, piece in pieces(text, _PIECE):
        if len(unicodedata.normalize("NFKC", piece).encode()) <= _MAX_BYTES:
            yield start, piece
        else:
            yield from ((start + inner, small) for inner, small in pieces(piece, _SMALL_PIECE))


def _version(lexicon: Lexicon) -> str:
    parts = [f"{name}-{version(name)}" for name in ("ginza", "ja_ginza", "sudachipy", "sudachidict-core")]
    return "+".join([*parts, f"a{ANALYZER_VERSION}t{TERMS_VERSION}n{NORMALIZER_VERSION}", f"i{lexicon.version}"])
