"""Benchmarks: ratios measured in one run, with seed, commit and raw log. `make bench` runs them."""
