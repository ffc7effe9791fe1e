"""The README's code runs, in order, and prints what its comments say."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)
EXPECTED = re.compile(r"#\s*->\s*(.*)$", re.MULTILINE)


def test_readme_code_prints_what_it_says():
    text = README.read_text(encoding="utf-8")
    code = "\n".join(BLOCK.findall(text))
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, str(README), "exec"), {"__name__": "readme"})
    assert printed.getvalue().splitlines() == [line.strip() for line in EXPECTED.findall(code)]
    assert len(EXPECTED.findall(code)) >= 6


def test_first_example_has_eight_lines():
    first = BLOCK.findall(README.read_text(encoding="utf-8"))[0]
    assert sum(bool(line.strip()) for line in first.splitlines()) == 8
