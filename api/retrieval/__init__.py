"""Retrieval: chunks by words and meaning, documents by the graph; only what the asker may read and what is live."""
