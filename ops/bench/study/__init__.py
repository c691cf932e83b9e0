"""Configurations of retrieval that are known from elsewhere, as rankers beside the product: for `shinsen eval`."""
