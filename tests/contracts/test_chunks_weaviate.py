"""The Weaviate chunk index: the contract, and what is its own."""

import uuid
from collections.abc import AsyncIterator, Callable

import pytest

from ops.stack.server import Endpoint
from pipeline.backends.chunks_weaviate import WeaviateChunks
from pipeline.backends.chunks_weaviate_client import WeaviateAddress
from pipeline.ports.chunk_index import ChunkIndex
from tests.contracts.chunk_fixtures import OpenIndex
from tests.contracts.chunk_index import ChunkIndexContract

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
    @pytest.fixture
    async def open_index(self, weaviate_address: WeaviateAddress, generation: str) -> OpenIndex:
        async def open_it() -> ChunkIndex:
            return WeaviateChunks(weaviate_address, generation)

        return open_it
