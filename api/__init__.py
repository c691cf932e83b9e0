"""The HTTP API: events in, questions out."""
