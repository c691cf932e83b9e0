"""The command line `shinsen`: one module per group of commands, all over the HTTP API."""
