"""Text: normalization, identifiers and index terms of Japanese."""
