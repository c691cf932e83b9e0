"""What every Graph must do: all of it, in one class to subclass."""

from tests.contracts.graph_queries import GraphQueries
from tests.contracts.graph_reads import GraphReads
from tests.contracts.graph_writes import GraphWrites


class GraphContract(GraphWrites, GraphReads, GraphQueries):
    """Subclasses give the fixture `open_graph`."""
