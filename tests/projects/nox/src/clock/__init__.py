"""Durations for people."""


def duration(seconds):
    """Returns a duration in minutes and seconds."""
    return f"{seconds // 60}m {seconds % 60}s"
