"""Replay and rebuild without downtime: a generation is built, compared, promoted, rolled back to, and pruned."""
