"""Weaviate's own BM25 over its own tokenizations of the text, as its user has it without this product."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

from weaviate import WeaviateAsyncClient
from weaviate.classes.config import Configure, DataType, Property, Tokenization
from weaviate.classes.data import DataObject
from weaviate.classes.query import MetadataQuery

from ops.evaluation.formats import Place
from ops.evaluation.golden import GoldenQuestion, GoldenSet
from ops.evaluation.ranking import Ranker
from ops.profile import read_settings
from pipeline.backends.chunks_weaviate_client import WeaviateAddress, WeaviateConnection
from pipeline.errors import InvalidConfiguration

DEPTH = 100
BATCH = 500
TOKENIZATIONS = {each.value: each for each in (Tokenization.WORD, Tokenization.TRIGRAM, Tokenization.KAGOME_JA)}


class WeaviateRanker:
    """Asks one collection with BM25."""

    def __init__(self, client: WeaviateAsyncClient, name: str, place: Place) -> None:
        self._found, self._place = client.collections.use(name), place

    async def rank(self, question: GoldenQuestion) -> list[str]:
        """Return the documents' keys, best first."""
        answer = await self._found.query.bm25(
            question.question, query_properties=["text"], limit=DEPTH, return_metadata=MetadataQuery(score=True)
        )
        return [self._place.key(str(each.properties["key"])) for each in answer.objects]


@asynccontextmanager
async def bm25(golden: GoldenSet, options: dict[str, Any], place: Place) -> AsyncIterator[Ranker]:
    """Fill a collection with title and text of each passage, rank with it, and drop it.

    `options`: `tokenization`: word, trigram or kagome_ja (which takes
    ENABLE_TOKENIZER_KAGOME_JA=true in the server's environment). Raises InvalidConfiguration without a server.
    """
    tokenization = TOKENIZATIONS.get(str(options.get("tokenization")))
    settings = read_settings()
    if tokenization is None or len(options) != 1:
        raise InvalidConfiguration(f"tokenization is one of {', '.join(TOKENIZATIONS)}")
    if not settings.weaviate:
        raise InvalidConfiguration("SHINSEN_WEAVIATE and SHINSEN_WEAVIATE_GRPC name no Weaviate to compare with")
    connection = WeaviateConnection(WeaviateAddress(settings.weaviate, settings.weaviate_grpc))
    name = f"Study_{tokenization.value}_{uuid4().hex[:8]}"
    try:
        client = await connection.client()
        try:
            await _fill(client, name, tokenization, golden)
            yield WeaviateRanker(client, name, place)
        finally:
            await client.collections.delete(name)
    finally:
        await connection.close()


async def _fill(client: WeaviateAsyncClient, name: str, tokenization: Tokenization, golden: GoldenSet) -> None:
    key = Property(name="key", data_type=DataType.TEXT, tokenization=Tokenization.FIELD, index_searchable=False)
    text = Property(name="text", data_type=DataType.TEXT, tokenization=tokenization)
    await client.collections.create(name, properties=[key, text], vector_config=Configure.Vectors.self_provided())
    collection = client.collections.use(name)
    for start in range(0, len(golden.passages), BATCH):
        part = golden.passages[start : start + BATCH]
        objects = [DataObject(properties={"key": p.id, "text": f"{p.title}\n{p.text}"}) for p in part]
        added = await collection.data.insert_many(objects)
        if added.has_errors:
            raise InvalidConfiguration(f"{name}: {next(iter(added.errors.values())).message}")
