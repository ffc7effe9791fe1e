"""python -m reproduction: the experiments of Oglic & Gaertner (ICML 2019), run again.

parts:
{parts}

other commands, which have a --help of their own:
  demo                  a metric that is not a kernel, in a minute
  convert               a data set from MATLAB

An interrupted run goes on where it was. Data sets are looked for in the folder that KREINLEARN_DATA
names; the report says which are missing and what to download. RESULTS.md, its figures and
measurements.jsonl are written. The exit status is 0, or 1 if a measurement failed or a number of
the quick run is outside its range, 2 for a wrong call, and 130 after Ctrl-C.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from reproduction import converting, demo
from reproduction.command import reproduce
from reproduction.scale import ALL, FOLDER, NAMES, QUICK
from reproduction.tasks import JournalError


def parser() -> argparse.ArgumentParser:
    """The options of the reproduction."""
    parts = [f"  {name:<22}{what}" for name, what in NAMES.items()]
    result = argparse.ArgumentParser(
        prog="python -m reproduction",
        description=(__doc__ or "").format(parts="\n".join(parts)),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = result.add_argument
    add("what", nargs="+", choices=("all", "quick", *NAMES), metavar="what",
        help="all, quick (all in small), or the names of parts (above)")  # fmt: skip
    add("--quick", action="store_true", help="run the parts in small")
    add("--output", type=Path, default=FOLDER, help=f"the folder to write to ({FOLDER})")
    add("--jobs", type=int, help="the number of measurements at a time (the number of cores)")
    add("--fresh", action="store_true", help="measure again what has been measured already")
    add("--report-only", action="store_true", help="measure nothing, and write the report")
    return result


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status."""
    words = sys.argv[1:] if argv is None else list(argv)
    others = {"demo": demo.main, "convert": converting.main}
    try:
        return others[words[0]](words[1:]) if words[:1] in [[k] for k in others] else _run(words)
    except (JournalError, OSError) as error:
        print(f"python -m reproduction: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


def _run(words: Sequence[str]) -> int:
    known = parser()
    options = known.parse_args(words)
    if options.jobs is not None and options.jobs < 1:
        known.error(f"--jobs {options.jobs}: it must be 1 or more")
    home = os.environ.get("KREINLEARN_DATA")
    if home and not Path(home).expanduser().is_dir():
        known.error(f"KREINLEARN_DATA={home}: there is no such folder; correct or unset it")
    names = list(NAMES) if {"all", "quick"} & set(options.what) else options.what
    scale = QUICK if options.quick or "quick" in options.what else ALL
    return reproduce(
        names, scale, options.output, options.jobs, fresh=options.fresh,
        report_only=options.report_only,
        command=" ".join(["python -m reproduction", *options.what, *["--quick"] * options.quick]),
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
