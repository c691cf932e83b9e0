"""A changed user dictionary: which documents hold the changed words, so that only those are analyzed again."""

from collections.abc import Mapping, Sequence

import msgspec
import structlog

from pipeline.ports.cache import Cache
from pipeline.ports.chunk_index import ChunkIndex
from pipeline.ports.generations import Generation
from pipeline.ports.state import State
from pipeline.text.dictionary import UserDictionary, changed_words
from pipeline.text.normalize import fold, matching_form
from pipeline.text.terms import bigrams

log = structlog.get_logger(__name__)

PART = "dictionary"
"""Its name among the versions of a generation, and as a kind of cached thing."""
MOST_HOLDERS = 1_000_000
"""Documents with one word; there are no more in a generation that one machine holds."""


def outdated_parts(built: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Return what a generation was built with in another version than runs now."""
    return sorted(name for name in built.keys() | now.keys() if built.get(name, "") != now.get(name, ""))


async def documents_holding(words: Sequence[str], state: State, chunks: ChunkIndex, generation: str) -> list[str]:
    """Return the documents whose text or title may hold one of these words of a dictionary, in key order.

    None that does is left out; one that has all the pieces of a word, but not the word, may be among them.
    """
    forms = {matching_form(word) for word in words}
    found: set[str] = set()
    for form in forms:
        if pairs := bigrams(form):
            found.update(await chunks.documents_with(pairs, MOST_HOLDERS))
    whole = [form for form in forms if not bigrams(form)]
    async for manifest in state.scan_manifests(generation):
        if manifest.op == "upsert" and (whole or _holds(manifest.title, forms)):
            found.add(manifest.document)
    return sorted(found)


def _holds(title: str, forms: set[str]) -> bool:
    text = matching_form(fold(title)[0])
    return any(form in text for form in forms)


class DictionaryChange:
    """Brings a generation up to the dictionary that runs now, when that is all it lacks."""

    def __init__(self, cache: Cache, dictionary: UserDictionary) -> None:
        """Take where the words of earlier versions are kept (losing them costs a replay), and the words of now."""
        self._cache, self._dictionary = cache, dictionary

    async def catch_up(
        self, state: State, generation: Generation, chunks: ChunkIndex, now: dict[str, str]
    ) -> list[str]:
        """Mark the documents that hold changed words, and return them; none when a replay is needed for other reasons.

        Marked before the generation counts as up to date: after a crash in between it is done again.
        """
        fingerprints, documents = self._dictionary.fingerprints(), list[str]()
        if outdated_parts(generation.versions, now) == [PART]:
            before = await self._words(generation.versions.get(PART, ""))
            if before is not None:
                words = changed_words(before, fingerprints)
                documents = await documents_holding(words, state, chunks, generation.name)
                await state.mark_relinks(generation.name, documents)
                await state.set_versions(generation.name, now)
                log.info("dictionary_changed", words=len(words), documents=len(documents))
        if self._dictionary.version:
            await self._cache.put(PART, {self._dictionary.version: msgspec.msgpack.encode(fingerprints)})
        return documents

    async def _words(self, version: str) -> dict[str, str] | None:
        """Return the words of a version; None when they are not known any more."""
        if not version:
            return {}
        kept = await self._cache.get(PART, [version])
        return msgspec.msgpack.decode(kept[version], type=dict[str, str]) if version in kept else None
