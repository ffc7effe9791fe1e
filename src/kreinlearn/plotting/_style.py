"""The former place of ``style``, until ``paper`` and ``demo`` import from there."""

from kreinlearn.plotting.style import COLOURS, MARKS, SETTINGS, log_ticks, mark, short, tidy

__all__ = ["COLOURS", "MARKS", "SETTINGS", "log_ticks", "mark", "short", "tidy"]
