"""Processes that run the models: a pool, its queue by lane, and one process."""
