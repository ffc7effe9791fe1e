"""Files of a person's own: tables, arrays and matrices; errors name the line."""

from kreinlearn.data.reading.arrays import Variables
from kreinlearn.data.reading.opening import ARRAYS, SHEETS, opened
from kreinlearn.data.reading.sheets import ArrowSheet, CsvSheet, Sheet
from kreinlearn.data.reading.targets import TASKS, Target, target_of

__all__ = [
    "ARRAYS",
    "SHEETS",
    "TASKS",
    "ArrowSheet",
    "CsvSheet",
    "Sheet",
    "Target",
    "Variables",
    "opened",
    "target_of",
]
