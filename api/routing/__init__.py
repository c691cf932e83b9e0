"""Routing: which source a question goes to, by rules."""
