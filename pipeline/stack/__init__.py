"""The API's side of the stack: events in, lag and outcomes read, generations pinned; no indexing here."""
