"""The embedded profile: everything in one process over one data folder."""
