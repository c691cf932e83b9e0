"""Fitting the weights of a search on golden sets, and saying what they are worth on questions they have not seen."""
