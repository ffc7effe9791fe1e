"""The commands and their options, with examples; nothing heavy is imported here."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, NoReturn

from kreinlearn import __version__
from kreinlearn.cli import values
from kreinlearn.cli.examples import EPILOGS, REPRODUCE
from kreinlearn.paper.names import FOLDER, NAMES

Commands = Any  # of argparse, whose type is private
SHELLS = ("bash", "zsh", "fish")
TASKS = ("auto", "classification", "regression")


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line; the flags are in --help."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message} (see {self.prog} --help)\n")


def parser() -> argparse.ArgumentParser:
    result = Parser(
        prog="kreinlearn",
        description="Learning from any symmetric similarity or dissimilarity.",
        epilog=EPILOGS[""],
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    result.add_argument("--version", action="version", version=f"kreinlearn {__version__}")
    commands = result.add_subparsers(dest="command", metavar="command", required=True)
    _add_inspect(commands)
    _add_fit(commands)
    _add_predict(commands)
    _add_evaluate(commands)
    _add_approximate(commands)
    # The demonstration has a parser of its own, which its options are left to.
    commands.add_parser("demo", help="look at polygons, approximate, learn, draw", add_help=False)
    _add_reproduce(commands)
    _add_completion(commands)
    return result


def _command(commands: Commands, name: str, what: str, more: str = "") -> Any:
    command = commands.add_parser(
        name,
        help=what,
        description=f"{what[0].upper()}{what[1:]}.{more}",
        epilog=EPILOGS[name],
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    command.set_defaults(parser=command)
    return command


# Commands


def _add_inspect(commands: Commands) -> None:
    command = _command(commands, "inspect", "what is this similarity or dissimilarity like")
    _add_file(command)
    _add_kernel(command)
    _add_target(command, "if given: how much of it sits in the negative part")
    add = command.add_argument
    add("--samples", type=values.several, default=1000, metavar="N",
        help="objects to look at, drawn at random where there are more (1000)")  # fmt: skip
    add("--html", type=Path, metavar="FILE", help="write a report that opens in a browser")
    _add_work(command, memory=False)
    _add_talk(command, json="print the findings as one JSON object")


def _add_fit(commands: Commands) -> None:
    command = _command(commands, "fit", "learn from a file, write a model")
    _add_file(command)
    _add_kernel(command)
    _add_target(command, "what is to be predicted", needed=True)
    _add_learner(command)
    add = command.add_argument
    add("--probabilities", action="store_true",
        help="so that predict can give probabilities; takes a few fits more")  # fmt: skip
    add("--param", action="append", type=values.assignment, default=[], metavar="NAME=VALUE",
        help="another parameter of the estimator: class_weight=balanced, say")  # fmt: skip
    add("--store", type=Path, metavar="FOLDER",
        help="keep kernel values there: a fit that was stopped goes on where it was")  # fmt: skip
    add("-o", "--output", type=Path, required=True, metavar="MODEL", help="the model: model.krein")
    _add_work(command)
    _add_talk(command, json="print what was learned as one JSON object")


def _add_predict(commands: Commands) -> None:
    command = _command(commands, "predict", "predict for every row of a file, in blocks of rows")
    command.add_argument("model", type=Path, metavar="MODEL", help="what fit wrote")
    _add_file(command)
    add = command.add_argument
    add("--scores", action="store_true", help="decision values too")
    add("--probabilities", action="store_true",
        help="probabilities too, of a model fitted with --probabilities")  # fmt: skip
    add("-o", "--output", type=Path, default=Path("-"), metavar="FILE",
        help="a .csv, .tsv, .jsonl or .parquet file; - is stdout (the default)")  # fmt: skip
    _add_work(command, seed=False)
    _add_talk(command)


def _add_evaluate(commands: Commands) -> None:
    command = _command(commands, "evaluate", "compare learners and baselines by cross-validation")
    _add_file(command)
    _add_kernel(command)
    _add_target(command, "what is to be predicted", needed=True)
    add = command.add_argument
    add("--task", choices=TASKS, default="auto", help="what to learn (as the target tells)")
    add("--landmarks", type=values.landmarks, default="auto", metavar="N",
        help="auto, all, a number, or a share such as 0.1 (auto: all, at most 1000)")  # fmt: skip
    add("--cv", type=values.folds, default=5, metavar="FOLDS", help="folds (5)")
    add("--html", type=Path, metavar="FILE", help="write a report that opens in a browser")
    add("--csv", type=Path, metavar="FILE", help="write the table as CSV")
    _add_work(command)
    _add_talk(command, json="print the table as one JSON object")


def _add_approximate(commands: Commands) -> None:
    command = _command(
        commands, "approximate", "low-rank factors of the similarity of all objects",
        " K is about F diag(s) F' with the arrays features (F) and signature (s).",
    )  # fmt: skip
    _add_file(command)
    _add_kernel(command)
    add = command.add_argument
    add("--target", metavar="NAME", help="a column or array to leave out")
    command.set_defaults(needs_target=None)
    add("--landmarks", type=values.landmarks, default="auto", metavar="N",
        help="auto, all, a number, or a share such as 0.1 (auto: 100, twice the rank)")  # fmt: skip
    add("--rank", type=values.rank, metavar="K", help="dimensions to keep, or auto: as few as do")
    add("--tol", type=values.share, metavar="ERROR",
        help="grow landmarks until the relative error is below it: 0.05, say")  # fmt: skip
    add("--store", type=Path, metavar="FOLDER", help="keep kernel values there")
    add("-o", "--output", type=Path, required=True, metavar="FILE", help="a .npz file or .zarr")
    _add_work(command)
    _add_talk(command, json="print what was found as one JSON object")


def _add_reproduce(commands: Commands) -> None:
    command = _command(commands, "reproduce", REPRODUCE)
    add = command.add_argument
    add("what", nargs="+", choices=("all", "quick", *NAMES), metavar="what",
        help="all, quick, or names of parts (below)")  # fmt: skip
    add("--quick", action="store_true", help="the parts in small")
    add("--output", type=Path, default=FOLDER, metavar="FOLDER",
        help=f"what is written goes there ({FOLDER} in the current folder)")  # fmt: skip
    add("--jobs", type=int, metavar="N", help="measurements side by side (number of cores)")
    add("--fresh", action="store_true", help="measure again what is already measured")
    add("--report-only", action="store_true", help="measure nothing, write the report")


def _add_completion(commands: Commands) -> None:
    command = _command(commands, "completion", "a script that completes words in your shell")
    command.add_argument("shell", choices=SHELLS, metavar="shell", help=" or ".join(SHELLS))


# Options that several commands have


def _add_file(command: Any) -> None:
    command.add_argument("file", type=Path, metavar="FILE",
                         help=".csv, .tsv, .jsonl, .parquet, .npy, .npz or .mat")  # fmt: skip
    add = command.add_argument_group("the file").add_argument
    add("--column", action="append", metavar="NAME",
        help="the column of texts or other objects, or one of several columns of numbers (give it "
        "again for each); without it, what fits the kernel")  # fmt: skip
    add("--id", metavar="NAME", help="a column that names the rows: predict keeps it, others "
        "leave it out")  # fmt: skip
    add("--encoding", type=values.encoding, metavar="NAME", help="of a text file (utf-8)")
    add("--delimiter", type=values.delimiter, metavar="MARK",
        help="between columns: ';' or tab, say (a comma; in .tsv files a tab)")  # fmt: skip
    add("--no-header", dest="header", action="store_false",
        help="the first line holds no names: columns are called 1, 2, ...")  # fmt: skip


def _add_kernel(command: Any) -> None:
    add = command.add_argument_group("the similarity").add_argument
    add("--kernel", metavar="NAME",
        help="levenshtein, dtw, gaussian, ...; precomputed or precomputed_dissimilarity for a "
        "matrix (without it: levenshtein for texts, gaussian for numbers)")  # fmt: skip
    add("--kernel-param", action="append", type=values.assignment, default=[],
        metavar="NAME=VALUE", help="width=2.5 or normalized=true; may be given again")  # fmt: skip


def _add_target(command: Any, what: str, needed: bool = False) -> None:
    add = command.add_argument
    add("--target", metavar="NAME", help=f"the column, or array of a .npz or .mat file, {what}")
    add("--labels", type=Path, metavar="FILE", help="a file that holds the target instead")
    command.set_defaults(needs_target=needed)


def _add_learner(command: Any) -> None:
    add = command.add_argument_group("the learner").add_argument
    add("--estimator", type=values.estimator, default="ridge", metavar="NAME",
        help=f"{', '.join(values.ESTIMATORS)}, or the name of a class (ridge)")  # fmt: skip
    add("--task", choices=TASKS, default="auto", help="what to learn (as the target tells)")
    add("--landmarks", type=values.landmarks, default="auto", metavar="N",
        help="auto, all, a number, or a share such as 0.1 (auto: all, at most 1000)")  # fmt: skip
    add("--cv", type=values.folds, metavar="FOLDS", help="folds that tune the penalties (5)")


def _add_work(command: Any, *, memory: bool = True, seed: bool = True) -> None:
    group = command.add_argument_group("the work")
    if memory:
        group.add_argument("--memory", type=values.memory, metavar="SIZE",
                           help="at most so much: 2GB (a quarter of what is free)")  # fmt: skip
    group.add_argument("--jobs", type=values.jobs, metavar="N", help="workers side by side")
    if seed:
        group.add_argument("--seed", type=values.seed, default=0, metavar="N",
                           help="of all that is drawn at random (0)")  # fmt: skip


def _add_talk(command: Any, json: str | None = None) -> None:
    group = command.add_argument_group("what is said")
    if json is not None:
        group.add_argument("--json", action="store_true", help=json)
    group.add_argument("--force", action="store_true", help="replace files that exist")
    loud = group.add_mutually_exclusive_group()
    loud.add_argument("--quiet", action="store_true", help="results and errors only")
    loud.add_argument("--verbose", action="store_true", help="say more")
    group.add_argument("--debug", action="store_true", help="show where an error arose")
