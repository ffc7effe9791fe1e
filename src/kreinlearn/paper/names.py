"""The names of the parts and of the files that are written; importing this is cheap."""

from pathlib import Path

NAMES = {
    "indefiniteness": "the paper's iota",
    "rank-error": "Figure 1",
    "time-error": "Figure 2",
    "rank-classification": "Figures 3 and 7",
    "table1": "Table 1",
    "table2": "Table 2",
    "size-time": "Figure 8",
    "flops": "the count of operations",
    "propositions": "Propositions 1 and 2",
}
FOLDER = Path("kreinlearn-paper")
REPORT, RESULTS = "report.html", "RESULTS.md"
