"""shinsen eval: measures, statistics, formats, the command, the gate of retrieval."""
