"""The graph on real SPARQL servers: the contract on both, and what is the backend's own."""

import uuid
from collections.abc import Callable

import pytest

from ops.stack.server import Endpoint
from pipeline.backends.graph_sparql import SparqlGraph
from pipeline.backends.graph_sparql_client import SparqlEndpoint
from pipeline.ports.graph import Graph
from tests.contracts.graph import GraphContract
from tests.contracts.graph_fixtures import OpenGraph

pytestmark = pytest.mark.stack


@pytest.fixture(scope="module", params=["fuseki", "oxigraph"])
def endpoint(request: pytest.FixtureRequest, stack_server: Callable[[str], Endpoint]) -> SparqlEndpoint:
    at = stack_server(request.param)
    return SparqlEndpoint(at.urls["query"], at.urls["update"])


@pytest.fixture
def generation() -> str:
    """A space of its own for each test."""
    return f"t{uuid.uuid4().hex[:12]}"


class TestSparqlGraph(GraphContract):
    @pytest.fixture
    async def open_graph(self, endpoint: SparqlEndpoint, generation: str) -> OpenGraph:
        async def open_it() -> Graph:
            return SparqlGraph(endpoint, generation)

        return open_it
