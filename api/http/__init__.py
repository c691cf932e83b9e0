"""The HTTP layer: one module per resource, one mapper for errors."""
