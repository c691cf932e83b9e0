"""Decoding: three envelopes (native, Debezium, CloudEvents) to change events."""

from pipeline.decoding.decode import decode

__all__ = ["decode"]
