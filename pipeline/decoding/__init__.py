"""Decoding: three envelopes (native, Debezium, CloudEvents) to change events."""

from pipeline.decoding.admission import admit
from pipeline.decoding.decode import decode

__all__ = ["admit", "decode"]
