"""What the command line logs."""

from pipeline.logs import Level, log_at
from pipeline.settings import Settings

__all__ = ["Level", "configure_logs", "log_at"]


def configure_logs(settings: Settings, *, quiet: bool) -> None:
    """Log at the level of the settings; `quiet` means warnings only unless a level was asked for."""
    log_at("warning" if quiet and "log_level" not in settings.model_fields_set else settings.log_level)
