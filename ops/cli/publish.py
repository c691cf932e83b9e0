"""publish."""


def publish() -> None:
    """Placeholder."""
