"""`python -m ops.cli`: the command without an installed script."""

from ops.cli.main import app

app(prog_name="shinsen")
