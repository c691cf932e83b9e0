"""The real servers on one machine without Docker: fetch, start, health-check, stop."""
