"""Mappings: the data-virtualization layer between source records and documents."""

from pipeline.mapping.load import load_mappings
from pipeline.mapping.mappings import Mappings

__all__ = ["Mappings", "load_mappings"]
