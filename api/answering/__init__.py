"""Answering: from evidence to cited sentences."""
