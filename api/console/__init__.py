"""The console: one static page to ask, search and read."""
