"""The command ``kreinlearn``: parses, calls, prints; one line instead of a traceback."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from kreinlearn import __version__
from kreinlearn.paper.command import FOLDER, NAMES, REPORT, RESULTS, reproduce
from kreinlearn.paper.scale import ALL, QUICK
from kreinlearn.paper.tasks import JournalError

EXAMPLES = """examples:
  kreinlearn demo                       a metric that is no kernel, in a minute
  kreinlearn reproduce quick            every experiment of the paper, in small: a few minutes
  kreinlearn reproduce all              every experiment, within an hour on two cores
"""
REPRODUCE = "the experiments of Oglic & Gaertner (ICML 2019), run again, ours beside the paper's"
PARTS = (
    "parts:\n"
    + "\n".join(f"  {name:<22}{what}" for name, what in NAMES.items())
    + f"""

examples:
  kreinlearn reproduce all                  every part; interrupted, the same command goes on
  kreinlearn reproduce quick                every part in small, compared with stored ranges
  kreinlearn reproduce table1 flops         two parts
  kreinlearn reproduce rank-error --quick   one part in small
  kreinlearn reproduce all --report-only    the report again, of what is measured

Data are looked for in the folder that KREINLEARN_DATA names; what is not there is said in
the report, with what to download. Written are {REPORT}, {RESULTS} and figures/*.svg;
measurements.jsonl keeps what was measured. Exit status: 0; 1 where a measurement failed or a
number of the quick run is outside its range; 2 for a wrong call; 130 after Ctrl-C.
"""
)


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(
        prog="kreinlearn",
        description="Learning from any symmetric similarity or dissimilarity.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    result.add_argument("--version", action="version", version=f"kreinlearn {__version__}")
    commands = result.add_subparsers(dest="command", metavar="command", required=True)
    # The demonstration has a parser of its own, which its options are left to.
    commands.add_parser("demo", help="look at polygons, approximate, learn, draw", add_help=False)
    _add_reproduce(commands)
    return result


def _add_reproduce(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "reproduce",
        help=REPRODUCE,
        description=f"{REPRODUCE[0].upper()}{REPRODUCE[1:]}.",
        epilog=PARTS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = command.add_argument
    add("what", nargs="+", choices=("all", "quick", *NAMES), metavar="what",
        help="all, quick, or names of parts (below)")  # fmt: skip
    add("--quick", action="store_true", help="the parts in small")
    add("--output", type=Path, default=FOLDER, metavar="FOLDER",
        help=f"what is written goes there ({FOLDER} in the current folder)")  # fmt: skip
    add("--jobs", type=int, metavar="N", help="measurements side by side (number of cores)")
    add("--fresh", action="store_true", help="measure again what is already measured")
    add("--report-only", action="store_true", help="measure nothing, write the report")
    command.set_defaults(parser=command)


def demonstrate(arguments: Sequence[str]) -> int:
    from kreinlearn.demo import main

    return main(arguments, prog="kreinlearn demo")


def run_again(options: argparse.Namespace) -> int:
    _check(options, options.parser)
    names = list(NAMES) if {"all", "quick"} & set(options.what) else options.what
    small = options.quick or "quick" in options.what
    return reproduce(
        names,
        QUICK if small else ALL,
        options.output,
        options.jobs,
        fresh=options.fresh,
        report_only=options.report_only,
        command=" ".join(["kreinlearn reproduce", *options.what, *["--quick"] * options.quick]),
    )


def _check(options: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """What argparse does not."""
    others = " ".join(name for name in options.what if name != "quick")
    if "quick" in options.what and others:
        parser.error(f"quick is every part in small; of some: reproduce {others} --quick")
    if options.jobs is not None and options.jobs < 1:
        parser.error(f"--jobs {options.jobs}: 1 or more")
    if options.output.exists() and not options.output.is_dir():
        parser.error(f"--output {options.output}: it is a file; name a folder, new or old")
    if options.fresh and options.report_only:
        parser.error("--fresh measures again, --report-only nothing: give one of them")
    home = os.environ.get("KREINLEARN_DATA")
    if home and not Path(home).expanduser().is_dir():
        parser.error(f"KREINLEARN_DATA={home}: there is no such folder; correct or unset it")


def main(argv: Sequence[str] | None = None) -> int:
    """The exit status: 0, 1 where something failed, 2 for a wrong call, 130 after Ctrl-C."""
    try:
        try:
            return _run(argv)
        finally:
            sys.stdout.flush()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # `| head`: nobody reads on, and the flush at exit must not complain
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (JournalError, OSError) as error:
        print(f"kreinlearn: {error}", file=sys.stderr)
        return 1


def _run(argv: Sequence[str] | None) -> int:
    commands = parser()
    options, rest = commands.parse_known_args(argv)
    if options.command == "demo":
        return demonstrate(rest)
    if rest:
        options.parser.error(f"unrecognized arguments: {' '.join(rest)}")
    return run_again(options)
