"""What every ChunkIndex must do: all of it, in one class to subclass."""

from tests.contracts.chunk_search import ChunkSearch
from tests.contracts.chunk_writes import ChunkWrites


class ChunkIndexContract(ChunkWrites, ChunkSearch):
    """Subclasses give the fixture `open_index`."""
