"""The pairs over the index of the stack."""

import uuid
from collections.abc import AsyncIterator, Callable

import pytest

from ops.stack.server import Endpoint
from pipeline.backends.chunks_weaviate import WeaviateChunks
from pipeline.backends.chunks_weaviate_client import WeaviateAddress
from tests.language.finding import Finding

pytestmark = pytest.mark.stack


class TestWeaviate(Finding):
    @pytest.fixture
    async def index(self, stack_server: Callable[[str], Endpoint]) -> AsyncIterator[WeaviateChunks]:
        at = stack_server("weaviate")
        index = WeaviateChunks(WeaviateAddress(at.url, f"{at.host}:{at.ports['grpc']}"), f"t{uuid.uuid4().hex[:12]}")
        yield index
        await index.drop()
        await index.close()
