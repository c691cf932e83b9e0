"""One step each, `rNNNN_words.py`, in order of their number; see `r0001_tables.py` and tables.py of `sql_state`."""
