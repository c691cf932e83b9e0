"""The Weaviate chunk index: the contract, and what is its own."""

import uuid
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from ops.stack.server import Endpoint
from pipeline.backends import chunks_weaviate_search
from pipeline.backends.chunks_weaviate import WeaviateChunks, collection_name
from pipeline.backends.chunks_weaviate_client import WeaviateAddress, WeaviateConnection
from pipeline.backends.chunks_weaviate_objects import chunk_uuid
from pipeline.errors import BackendUnavailable, InvalidConfiguration
from pipeline.ports.chunk_index import ChunkFilter, ChunkIndex
from tests.contracts.chunk_examples import ALL, chunk, unit, words
from tests.contracts.chunk_fixtures import OpenIndex
from tests.contracts.chunk_index import ChunkIndexContract
from tests.contracts.chunk_writes import scanned

pytestmark = pytest.mark.stack


@pytest.fixture(scope="session")
def weaviate_address(stack_server: Callable[[str], Endpoint]) -> WeaviateAddress:
    at = stack_server("weaviate")
    return WeaviateAddress(at.url, f"{at.host}:{at.ports['grpc']}")


@pytest.fixture
async def generation(weaviate_address: WeaviateAddress) -> AsyncIterator[str]:
    """A generation of its own for each test, removed at its end."""
    name = f"t{uuid.uuid4().hex[:12]}"
    yield name
    await WeaviateChunks(weaviate_address, name).drop()


class TestWeaviateChunks(ChunkIndexContract):
    MANY = 2_000

    @pytest.fixture
    async def open_index(self, weaviate_address: WeaviateAddress, generation: str) -> OpenIndex:
        async def open_it() -> ChunkIndex:
            return WeaviateChunks(weaviate_address, generation)

        return open_it


@pytest.fixture
async def index(weaviate_address: WeaviateAddress, generation: str) -> AsyncIterator[WeaviateChunks]:
    index = WeaviateChunks(weaviate_address, generation)
    yield index
    await index.close()


@pytest.mark.parametrize(
    ("ask", "answer"),
    [(lambda index: index.missing(["c1"]), {"c1"}), (lambda index: index.held([chunk("c1").document]), set())],
    ids=["missing", "held"],
)
async def test_what_somebody_dropped_is_missing_and_can_be_put_back(
    index: WeaviateChunks,
    weaviate_address: WeaviateAddress,
    generation: str,
    ask: Callable[[WeaviateChunks], Awaitable[set[str]]],
    answer: set[str],
) -> None:
    one = chunk("c1")
    await index.stage([one])
    await WeaviateChunks(weaviate_address, generation).drop()
    assert await ask(index) == answer
    await index.stage([one])
    assert await index.missing(["c1"]) == set() and await index.held([one.document]) == {one.document}


async def test_who_asks_for_nothing_makes_no_collection(
    index: WeaviateChunks, weaviate_address: WeaviateAddress, generation: str
) -> None:
    assert await index.missing([]) == set() and await index.held([]) == set()
    connection = WeaviateConnection(weaviate_address)
    assert not await (await connection.client()).collections.exists(collection_name("Shinsen", generation))
    await connection.close()


async def test_odd_tokens_and_keys_come_back_and_are_found(index: WeaviateChunks) -> None:
    odd = [
        "",
        " ",
        "a b",
        "\u3000",
        "x\u0085y",
        "a\x00b",
        "\x02",
        "\x0361",
        "The",
        "the",
        "and",
        "\ud800",
        "é\u2028",
        "ÀB",
    ]
    one = chunk(
        "c1", *odd, bigrams=("x y", "\x03"), identifiers=("f 17",), title_terms=("a\tb",), text="本文", type=" t "
    )
    keys = ["s/c/a ", "s/c/a", "s/c/ a", "s/c/a\x00"]
    await index.stage([one, *(chunk(f"k{n}", document=key) for n, key in enumerate(keys))])
    assert (await index.get(["c1"]))["c1"] == one
    for token in filter(None, odd):
        assert [hit.id for hit in await index.lexical(words(token), ALL, 9)] == ["c1"], repr(token)
    assert await index.documents_with(["x y", "\x03"], 9) == [one.document]
    where = ChunkFilter(types=(" t ",))
    assert [hit.id for hit in await index.lexical(words("The"), where, 9)] == ["c1"]
    assert await index.lexical(words("The"), ChunkFilter(types=("t",)), 9) == []
    await index.collect({"s/c/a": (), "s/c/ a": ()}, 1)
    assert {c.document for c in await scanned(index)} == {one.document, "s/c/a ", "s/c/a\x00"}


async def test_documents_beyond_a_page_are_all_there_in_order(
    index: WeaviateChunks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunks_weaviate_search, "PAGE", 7)
    keys = [f"s/c/{prefix}{n}" for n in range(12) for prefix in ("z", "A", "鍵", "")]
    await index.stage(
        [
            chunk(f"{key}-{n}", document=key, bigrams=("青木",))
            for key in keys
            for n in range(9 if key == "s/c/5" else 1)
        ]
    )
    await index.stage([chunk("other", document="s/c/none", bigrams=("鉄",))])
    assert await index.documents_with(["青木"], 99) == sorted(keys)
    assert await index.documents_with(["青木"], 5) == sorted(keys)[:5]


async def test_vectors_of_another_length_are_refused(index: WeaviateChunks) -> None:
    await index.stage([chunk("a", vector=unit(1))])
    with pytest.raises(InvalidConfiguration, match="replay"):
        await index.stage([chunk("b", vector=unit(1)[:16])])
    with pytest.raises(InvalidConfiguration, match="replay"):
        await index.stage([chunk("c", vector=unit(1)), chunk("d", vector=unit(1)[:16])])
    with pytest.raises(InvalidConfiguration, match="replay"):
        await index.dense(unit(1)[:16], ALL, 5)


async def test_changes_by_hand_show_in_the_scan(weaviate_address: WeaviateAddress, index: WeaviateChunks) -> None:
    names = ("a", "b")
    await index.stage([chunk(n, "荷重", n, bigrams=("荷重",), title_terms=("表題",), vector=unit(1)) for n in names])
    before = await scanned(index)
    by_hand = await index._collection()
    for name, value in (
        ("terms", "荷重"),
        ("bigrams", ""),
        ("title_terms", "別"),
        ("access_class", "everyone"),
        ("document", "s/c/2"),
    ):
        await by_hand.data.update(chunk_uuid("a"), properties={name: value})
        after = await scanned(index)
        assert after[0] != before[0] and after[1] == before[1], name
        await index.stage([before[0]])
        assert await scanned(index) == before
    whole = (await by_hand.query.fetch_object_by_id(chunk_uuid("b"))).properties
    await by_hand.data.replace(chunk_uuid("b"), properties=whole)  # without its vector
    assert [c.vector is not None for c in await scanned(index)] == [True, False]


async def test_a_foreign_collection_is_refused(weaviate_address: WeaviateAddress, generation: str) -> None:
    connection = WeaviateConnection(weaviate_address)
    await (await connection.client()).collections.create(collection_name("Shinsen", generation))
    await connection.close()
    index = WeaviateChunks(weaviate_address, generation)
    with pytest.raises(InvalidConfiguration, match="not as Shinsen makes it"):
        await index.count()
    await index.close()


async def test_no_server_at_all() -> None:
    index = WeaviateChunks(WeaviateAddress("http://127.0.0.1:1", "127.0.0.1:2"), "g1")
    for call in (index.count(), index.stage([chunk("a")]), index.collect({"s/c/1": ()}, 1)):
        with pytest.raises(BackendUnavailable, match="check that it runs"):
            await call
    await index.close()
    await index.close()
    with pytest.raises(BackendUnavailable, match="closed"):
        await index.count()
    for wrong in (
        WeaviateAddress("localhost:8080"),
        WeaviateAddress("http://a:1", "a"),
        WeaviateAddress("http://a:1", "a:1"),
    ):
        with pytest.raises(InvalidConfiguration, match="SHINSEN_WEAVIATE"):
            WeaviateChunks(wrong, "g1")
