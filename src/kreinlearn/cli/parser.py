"""The commands and their options; nothing that takes long to import is imported here."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from kreinlearn import __version__
from kreinlearn.cli import arguments
from kreinlearn.cli.examples import EPILOGS

Command = argparse.ArgumentParser
SHELLS = ("bash", "zsh", "fish")
TASKS = ("auto", "classification", "regression")


class Parser(argparse.ArgumentParser):
    """A parser that says in one line what is wrong; --help lists the flags."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message} (see {self.prog} --help)\n")


class Help(argparse.RawDescriptionHelpFormatter):
    """One line for most flags, in 100 columns, so that a page of help fits a screen."""

    def __init__(self, prog: str, **_: Any) -> None:
        super().__init__(prog, max_help_position=30, width=100)


def parser() -> Command:
    result = Parser(
        prog="kreinlearn",
        description="Learn from any symmetric similarity or dissimilarity.",
        epilog=EPILOGS[""],
        formatter_class=Help,
        allow_abbrev=False,
    )
    result.add_argument("--version", action="version", version=f"kreinlearn {__version__}")
    commands = result.add_subparsers(dest="command", metavar="command", required=True)
    _add_inspect(commands)
    _add_fit(commands)
    _add_predict(commands)
    _add_evaluate(commands)
    _add_approximate(commands)
    _add_cluster(commands)
    command = _command(commands, "kernels", "list the kernels and the objects that they take", "")
    command.add_argument("--objects", type=arguments.objects, choices=arguments.OBJECTS,
        metavar="KIND", help=f"only those for {', '.join(arguments.OBJECTS)}")  # fmt: skip
    command = _command(commands, "completion", "print a script for your shell", "SHELL")
    command.add_argument("shell", choices=SHELLS, metavar="SHELL", help=", ".join(SHELLS))
    return result


def commands_of(parser: Command) -> dict[str, Command]:
    """Return the parser of each command by its name."""
    (action,) = [one for one in parser._actions if isinstance(one, argparse._SubParsersAction)]
    return dict(action.choices)


def parsed(words: Sequence[str]) -> argparse.Namespace:
    """Return the options; of a name that does not exist, say what was meant: argparse does not."""
    known = parser()
    if words and not words[0].startswith("-"):
        commands = commands_of(known)
        if words[0] not in commands:
            meant = arguments.close_to(words[0], commands, f"there are {', '.join(commands)}")
            known.error(f"there is no command {words[0]!r}; {meant}")
        command, flags = commands[words[0]], commands[words[0]]._option_string_actions
        for flag in [word.partition("=")[0] for word in words if word.startswith("--")]:
            if flag not in flags and flag != "--":
                meant = arguments.close_to(flag, flags, "see the help")
                command.error(f"there is no flag {flag}; {meant}")
    options, rest = known.parse_known_args(words)
    if rest:
        before = words[words.index(rest[0]) - 1] if rest[0] in words else ""
        action = options.parser._option_string_actions.get(before)
        why = f"; {before} takes no value" if action is not None and action.nargs == 0 else ""
        options.parser.error(f"unrecognized arguments: {' '.join(rest)}{why}")
    return options


def _command(commands: Any, name: str, what: str, usage: str, more: str = "") -> Command:
    command: Command = commands.add_parser(
        name,
        help=what,
        usage=f"kreinlearn {name} {usage} [options]".replace("  ", " "),
        description=f"{what[0].upper()}{what[1:]}.{more}",
        epilog=EPILOGS[name],
        formatter_class=Help,
        allow_abbrev=False,
    )
    command.set_defaults(parser=command)
    return command


# Commands


def _add_inspect(commands: Any) -> None:
    command = _command(
        commands, "inspect", "tell what a similarity or dissimilarity is like", "FILE"
    )
    _add_objects(command)
    _add_target(command, "whose signal in the negative part is measured", needed=False)
    add = command.add_argument
    add("--samples", type=arguments.several, default=1000, metavar="N",
        help="look at so many objects, drawn at random if there are more (1000)")  # fmt: skip
    add("--html", type=Path, metavar="FILE", help="write a report that opens in a browser")
    _add_work(command, memory=False, json="print the findings as one JSON object")


def _add_fit(commands: Any) -> None:
    usage = "FILE --target NAME -o MODEL"
    command = _command(commands, "fit", "learn from a file and write a model", usage)
    _add_objects(command)
    _add_target(command, "that is to be predicted", needed=True)
    _add_task(command)
    add = command.add_argument
    add("--estimator", type=arguments.estimator, default=arguments.FRONT, metavar="NAME",
        help=f"{', '.join(arguments.ESTIMATORS)}")  # fmt: skip
    add("--time-limit", type=arguments.seconds, metavar="SECONDS",
        help="of one core, which limits the landmarks (40); for krein only")  # fmt: skip
    add("--cv", type=arguments.folds, metavar="FOLDS",
        help="folds that tune the penalties; not for krein")  # fmt: skip
    add("--probabilities", action="store_true",
        help="let predict give probabilities, which krein has anyway")  # fmt: skip
    add("--conformal", choices=arguments.CONFORMAL, metavar="METHOD",
        help="for predict --coverage: split (a quarter is set aside) or cv+ (slower)")  # fmt: skip
    add("--param", action="append", type=arguments.assignment, default=[], metavar="NAME=VALUE",
        help="another parameter of the estimator, as class_weight=balanced")  # fmt: skip
    add("--store", type=Path, metavar="FOLDER",
        help="keep kernel values there: a fit that was stopped goes on")  # fmt: skip
    add("-o", "--output", type=Path, required=True, metavar="MODEL",
        help="the file for the model, such as model.krein")  # fmt: skip
    _add_work(command, json="print what was learned as one JSON object")


def _add_predict(commands: Any) -> None:
    command = _command(commands, "predict", "predict for every row of a file", "MODEL FILE")
    command.add_argument("model", type=Path, metavar="MODEL", help="the file that fit wrote")
    _add_file(command)
    add = command.add_argument
    add("--scores", action="store_true", help="write decision values too")
    add("--probabilities", action="store_true",
        help="write probabilities too; needs fit --probabilities, but for krein")  # fmt: skip
    add("--coverage", type=arguments.coverage, metavar="SHARE",
        help="write an interval, or a set of classes, that covers this share of the truth; needs "
        "fit --conformal")  # fmt: skip
    add("--novelty", action="store_true",
        help="write a p-value, small for a row unlike all of fit; needs fit --conformal")  # fmt: skip
    add("--explain", type=arguments.count, metavar="N",
        help="write the N landmarks most for, and most against, each prediction")  # fmt: skip
    add("-o", "--output", type=Path, default=Path("-"), metavar="FILE",
        help="a .csv, .tsv, .jsonl or .parquet file, or - for stdout (-)")  # fmt: skip
    _add_spreadsheet(command)
    _add_work(command, seed=False)


def _add_evaluate(commands: Any) -> None:
    command = _command(commands, "evaluate", "compare learners and baselines by cross-validation",
                       "FILE --target NAME")  # fmt: skip
    _add_objects(command)
    _add_target(command, "that is to be predicted", needed=True)
    _add_task(command)
    add = command.add_argument
    add("--learners", type=arguments.learners, action="extend", metavar="NAMES",
        help=f"with commas in between: {', '.join(arguments.LEARNERS)} (all)")  # fmt: skip
    add("--cv", type=arguments.folds, default=5, metavar="FOLDS", help="the number of folds (5)")
    add("--time-limit", type=arguments.seconds, metavar="SECONDS",
        help="for all learners; without it, slow ones get fewer objects (about 100)")  # fmt: skip
    add("--html", type=Path, metavar="FILE", help="write a report that opens in a browser")
    add("--markdown", type=Path, metavar="FILE", help="write the report as a .md file")
    add("--csv", type=Path, metavar="FILE", help="write the table as a CSV file")
    _add_work(command, json="print the table as one JSON object")


def _add_approximate(commands: Any) -> None:
    command = _command(
        commands, "approximate", "write low-rank factors of the similarities of all objects",
        "FILE -o FACTORS", "\nThe matrix of similarities is about F diag(s) F', with the arrays "
        "features (F) and signature (s).",
    )  # fmt: skip
    _add_objects(command)
    _add_target(command, "to leave out", needed=None)
    _add_landmarks(command, "100, twice the rank")
    add = command.add_argument
    add("--rank", type=arguments.rank, metavar="K",
        help="the number of dimensions, or auto: as few as are needed")  # fmt: skip
    add("--tol", type=arguments.share, metavar="ERROR",
        help="add landmarks until the relative error is below this, as 0.05")  # fmt: skip
    add("--store", type=Path, metavar="FOLDER", help="keep kernel values there")
    add("-o", "--output", type=Path, required=True, metavar="FILE",
        help="a file that ends in .npz")  # fmt: skip
    _add_work(command, json="print the findings as one JSON object")


def _add_cluster(commands: Any) -> None:
    command = _command(commands, "cluster", "find groups of objects, without labels", "FILE")
    _add_objects(command)
    _add_target(command, "to leave out", needed=None)
    _add_landmarks(command, "all of up to 1000")
    add = command.add_argument
    command.set_defaults(store=None)
    add("--clusters", type=arguments.clusters, default="auto", metavar="K",
        help="the number of groups, or auto: that with the largest silhouette (auto)")  # fmt: skip
    add("--spectrum", choices=("shift", "flip"), default="shift", metavar="WAY",
        help="negative eigenvalues: shift keeps the cost of the given distances up to a constant, "
        "flip takes absolute values (shift)")  # fmt: skip
    add("-o", "--output", type=Path, metavar="FILE",
        help="write the group of each row: .csv, .tsv, .jsonl or .parquet")  # fmt: skip
    _add_spreadsheet(command)
    add("--model", type=Path, metavar="MODEL", help="write a model, which predict applies to rows")
    add("--report", type=Path, metavar="FILE", help="write a page that opens in a browser")
    _add_work(command, json="print the groups as one JSON object")


# Options that several commands have


def _add_file(command: Command) -> None:
    add = command.add_argument
    add("file", type=Path, metavar="FILE", help=".csv, .tsv, .jsonl, .parquet, .npy or .npz")
    add("--column", action="append", metavar="NAME",
        help="a column, or array, of the objects; repeat the flag for several (all)")  # fmt: skip
    add("--id", metavar="NAME", help="a column that names the rows, and is no part of the objects")
    add("--encoding", type=arguments.encoding, metavar="NAME", help="of a text file (utf-8)")
    add("--delimiter", type=arguments.delimiter, metavar="MARK",
        help="the character between columns: ';' or tab (found in the first rows)")  # fmt: skip
    add(
        "--decimal",
        choices=(".", ","),
        metavar="MARK",
        help="of numbers in a text file: , or . (.)",
    )
    add("--no-header", dest="header", action="store_false",
        help="the first line holds no names; columns are called 1, 2, and so on")  # fmt: skip
    add("--drop-missing", action="store_true",
        help="leave out rows with an empty cell, which is an error otherwise")  # fmt: skip


def _add_objects(command: Command) -> None:
    """Add the options of a command that reads objects and compares them."""
    _add_file(command)
    add = command.add_argument
    add("--kernel", action="append", metavar="NAME",
        help="see kreinlearn kernels; auto compares several (krein and evaluate: auto); COLUMN=NAME "
        "compares one column; repeat the flag to learn a weighted sum")  # fmt: skip
    add("--kernel-param", action="append", type=arguments.assignment, default=[],
        metavar="NAME=VALUE", help="a parameter of the kernel, such as width=2.5")  # fmt: skip


def _add_target(command: Command, what: str, needed: bool | None) -> None:
    command.add_argument("--target", metavar="NAME", help=f"the column, or array, {what}")
    if needed is not None:
        command.add_argument("--labels", type=Path, metavar="FILE",
            help="another file that holds the target")  # fmt: skip
    command.set_defaults(needs_target=needed)


def _add_landmarks(command: Command, auto: str) -> None:
    command.add_argument("--landmarks", type=arguments.landmarks, default="auto", metavar="N",
        help=f"auto, all, a number, or a share such as 0.1 (auto: {auto})")  # fmt: skip


def _add_task(command: Command) -> None:
    command.add_argument("--task", choices=TASKS, default="auto", metavar="TASK",
        help="auto, classification or regression (auto: as the target tells)")  # fmt: skip
    _add_landmarks(command, "all, if time allows")


def _add_spreadsheet(command: Command) -> None:
    command.add_argument("--spreadsheet", action="store_true",
        help="an apostrophe before texts that a spreadsheet would run, as =1+1")  # fmt: skip


def _add_work(
    command: Command, *, memory: bool = True, seed: bool = True, json: str | None = None
) -> None:
    add = command.add_argument
    if memory:
        add("--memory", type=arguments.memory, metavar="SIZE",
            help="how much may be used: 2GB (a quarter of what is free)")  # fmt: skip
    add("--jobs", type=arguments.jobs, metavar="N", help="the number of workers; -1: one per core")
    if seed:
        add("--seed", type=arguments.seed, default=0, metavar="N",
            help="of everything that is drawn at random (0)")  # fmt: skip
    switch = partial(add, action="store_true")
    if json is not None:
        switch("--json", help=json)
    switch("--force", help="replace files that exist")
    switch("--quiet", help="print results and errors only")
