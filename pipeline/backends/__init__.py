"""Backends: each port made real by one technology; only the wiring names them."""
