"""Pure steps: functions of (record or text, versions), so that they can be cached and replayed."""
