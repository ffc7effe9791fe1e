"""The commands and their options; nothing that takes long to import is imported here."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from kreinlearn import __version__
from kreinlearn.cli import arguments
from kreinlearn.cli.examples import EPILOGS

Commands = Any  # what add_subparsers returns, whose type is private
Command = argparse.ArgumentParser
SHELLS = ("bash", "zsh", "fish")
TASKS = ("auto", "classification", "regression")


class Parser(argparse.ArgumentParser):
    """A parser that says in one line what is wrong; --help lists the flags."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message} (see {self.prog} --help)\n")


def parser() -> argparse.ArgumentParser:
    result = Parser(
        prog="kreinlearn",
        description="Learn from any symmetric similarity or dissimilarity.",
        epilog=EPILOGS[""],
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    result.add_argument("--version", action="version", version=f"kreinlearn {__version__}")
    commands = result.add_subparsers(dest="command", metavar="command", required=True)
    for add in (_add_inspect, _add_fit, _add_predict, _add_evaluate, _add_approximate):
        add(commands)
    _add_cluster(commands)
    _add_kernels(commands)
    _add_completion(commands)
    return result


def require_known(words: Sequence[str], within: argparse.ArgumentParser) -> None:
    """Say what was meant by a command or a flag that does not exist; argparse does not."""
    (choices,) = [one for one in within._actions if isinstance(one, argparse._SubParsersAction)]
    if not words or words[0].startswith("-"):
        return
    if words[0] not in choices.choices:
        meant = (
            arguments.close_to(words[0], choices.choices)
            or f"there are {', '.join(choices.choices)}"
        )
        within.error(f"there is no command {words[0]!r}; {meant}")
    command = choices.choices[words[0]]
    known = [flag for action in command._actions for flag in action.option_strings]
    given = [word.partition("=")[0] for word in words[1:] if word.startswith("--") and word != "--"]
    for flag in given if known else []:  # the demonstration has a parser of its own
        if flag not in known:
            command.error(
                f"there is no flag {flag}; {arguments.close_to(flag, known) or 'see the help'}"
            )


def _command(commands: Commands, name: str, what: str, more: str = "") -> Command:
    command: Command = commands.add_parser(
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
    command = _command(commands, "inspect", "tell what a similarity or dissimilarity is like")
    _add_objects(command)
    _add_target(command, "whose signal in the negative part of the spectrum is measured")
    add = command.add_argument
    add("--samples", type=arguments.several, default=1000, metavar="N",
        help="look at so many objects, drawn at random if there are more (1000)")  # fmt: skip
    add("--html", type=Path, metavar="FILE", help="write a report that opens in a browser")
    _add_work(command, memory=False)
    _add_talk(command, json="print the findings as one JSON object")


def _add_fit(commands: Commands) -> None:
    command = _command(commands, "fit", "learn from a file and write a model")
    _add_objects(command)
    _add_target(command, "that is to be predicted", needed=True)
    learner = command.add_argument_group("the learner").add_argument
    learner("--estimator", type=arguments.estimator, default=arguments.FRONT, metavar="NAME",
            help=f"{', '.join(arguments.ESTIMATORS)}, or the name of a class (krein)")  # fmt: skip
    _add_task(learner)
    learner("--time-limit", type=arguments.seconds, metavar="SECONDS",
            help="about how long one core may work, which limits the landmarks (40); for krein "
            "only")  # fmt: skip
    learner("--cv", type=arguments.folds, metavar="FOLDS",
            help="the number of folds that tune the penalties (one object is left out at a time, "
            "or 5); not for krein")  # fmt: skip
    add = command.add_argument
    add("--probabilities", action="store_true",
        help="let predict give probabilities, which krein has without being asked")  # fmt: skip
    add("--conformal", choices=arguments.CONFORMAL,
        help="let predict give --coverage and --novelty: split sets a quarter of the rows aside, "
        "cv+ learns from all rows and takes five more fits")  # fmt: skip
    add("--param", action="append", type=arguments.assignment, default=[], metavar="NAME=VALUE",
        help="another parameter of the estimator: class_weight=balanced, for example")  # fmt: skip
    add("--store", type=Path, metavar="FOLDER",
        help="keep kernel values there: a fit that was stopped goes on where it was")  # fmt: skip
    add("-o", "--output", type=Path, required=True, metavar="MODEL",
        help="the file for the model, such as model.krein")  # fmt: skip
    _add_work(command)
    _add_talk(command, json="print what was learned as one JSON object")


def _add_predict(commands: Commands) -> None:
    command = _command(commands, "predict", "predict for every row of a file")
    command.add_argument("model", type=Path, metavar="MODEL", help="the file that fit wrote")
    _add_file(command)
    add = command.add_argument
    add("--scores", action="store_true", help="write decision values too")
    add("--probabilities", action="store_true",
        help="write probabilities too; models of other estimators than krein need fit "
        "--probabilities")  # fmt: skip
    add("--coverage", type=arguments.coverage, metavar="SHARE",
        help="write what covers the truth of this share of the rows, such as 0.9: the ends of an "
        "interval, lower and upper, or a set of classes, with ' | ' in between; needs fit "
        "--conformal")  # fmt: skip
    add("--novelty", action="store_true",
        help="write a p-value that is small if a row is unlike all that the model was fitted on; "
        "needs fit --conformal")  # fmt: skip
    add("--explain", type=arguments.count, metavar="N",
        help="write the N landmarks that speak most for each prediction and the N that speak most "
        "against it, with their labels and contributions")  # fmt: skip
    add("-o", "--output", type=Path, default=Path("-"), metavar="FILE",
        help="a .csv, .tsv, .jsonl or .parquet file, or - for stdout (the default)")  # fmt: skip
    _add_spreadsheet(add)
    _add_work(command, seed=False)
    _add_talk(command)


def _add_evaluate(commands: Commands) -> None:
    command = _command(commands, "evaluate", "compare learners and baselines by cross-validation")
    _add_objects(command)
    _add_target(command, "that is to be predicted", needed=True)
    add = command.add_argument
    _add_task(add)
    add("--learners", type=arguments.learners, action="extend", metavar="NAMES",
        help=f"the learners to compare, with commas in between: {', '.join(arguments.LEARNERS)} "
        "(all of them)")  # fmt: skip
    add("--cv", type=arguments.folds, default=5, metavar="FOLDS", help="the number of folds (5)")
    add("--time-limit", type=arguments.seconds, metavar="SECONDS",
        help="how long each learner may take; what there was no time for is named")  # fmt: skip
    add("--html", type=Path, metavar="FILE", help="write a report that opens in a browser")
    add("--markdown", type=Path, metavar="FILE", help="write the report as Markdown, to a .md file")
    add("--csv", type=Path, metavar="FILE", help="write the table as a CSV file")
    _add_work(command)
    _add_talk(command, json="print the table as one JSON object")


def _add_approximate(commands: Commands) -> None:
    command = _command(
        commands, "approximate", "write low-rank factors of the similarities of all objects",
        " The matrix of similarities is about F diag(s) F', with the arrays features (F) and "
        "signature (s).",
    )  # fmt: skip
    _add_objects(command)
    add = command.add_argument
    add("--target", metavar="NAME", help="a column or array to leave out")
    command.set_defaults(needs_target=None)
    add("--landmarks", type=arguments.landmarks, default="auto", metavar="N",
        help="auto, all, a number, or a share such as 0.1 (auto: 100, twice the rank)")  # fmt: skip
    add("--rank", type=arguments.rank, metavar="K",
        help="the number of dimensions, or auto: as few as are needed")  # fmt: skip
    add("--tol", type=arguments.share, metavar="ERROR",
        help="add landmarks until the relative error is below this: 0.05, for example")  # fmt: skip
    add("--store", type=Path, metavar="FOLDER", help="keep kernel values there")
    add("-o", "--output", type=Path, required=True, metavar="FILE",
        help="a file that ends in .npz")  # fmt: skip
    _add_work(command)
    _add_talk(command, json="print the findings as one JSON object")


def _add_kernels(commands: Commands) -> None:
    command = _command(commands, "kernels", "list the kernels and the objects that they take")
    command.add_argument("--objects", type=arguments.objects, choices=arguments.OBJECTS,
        metavar="KIND", help=f"only those for {', '.join(arguments.OBJECTS)}")  # fmt: skip


def _add_cluster(commands: Commands) -> None:
    command = _command(commands, "cluster", "find groups of objects, without labels")
    _add_objects(command)
    add = command.add_argument
    add("--target", metavar="NAME", help="a column or array to leave out")
    command.set_defaults(needs_target=None, store=None)
    add("--clusters", type=arguments.clusters, default="auto", metavar="K",
        help="the number of groups, or auto: that with the largest silhouette (auto)")  # fmt: skip
    add("--spectrum", choices=("shift", "flip"), default="shift",
        help="how negative eigenvalues are met: shift keeps the cost of the given distances up to "
        "a constant, flip takes absolute values (shift)")  # fmt: skip
    add("--landmarks", type=arguments.landmarks, default="auto", metavar="N",
        help="auto, all, a number, or a share such as 0.1 (auto: all of up to 1000)")  # fmt: skip
    add("-o", "--output", type=Path, metavar="FILE",
        help="write the group of each row to a .csv, .tsv, .jsonl or .parquet file")  # fmt: skip
    _add_spreadsheet(add)
    add("--model", type=Path, metavar="MODEL", help="write a model, which predict applies to rows")
    add("--report", type=Path, metavar="FILE", help="write a page that opens in a browser")
    _add_work(command)
    _add_talk(command, json="print the groups as one JSON object")


def _add_completion(commands: Commands) -> None:
    command = _command(commands, "completion", "print a script that completes words in your shell")
    command.add_argument("shell", choices=SHELLS, metavar="shell", help=" or ".join(SHELLS))


# Options that several commands have


def _add_file(command: Command) -> None:
    command.add_argument(
        "file", type=Path, metavar="FILE",
        help="a .csv, .tsv, .jsonl, .parquet, .npy, or .npz file",
    )  # fmt: skip
    add = command.add_argument_group("the file").add_argument
    add("--column", action="append", metavar="NAME",
        help="the column of texts or other objects, or one of several columns of numbers (repeat "
        "the flag for each); without it, the columns that suit the kernel")  # fmt: skip
    add("--id", metavar="NAME", help="a column that names the rows: predict copies it, other "
        "commands leave it out")  # fmt: skip
    add("--encoding", type=arguments.encoding, metavar="NAME",
        help="the encoding of a text file (utf-8)")  # fmt: skip
    add("--delimiter", type=arguments.delimiter, metavar="MARK",
        help="the character between columns: ';' or tab (found in the first rows)")  # fmt: skip
    add("--decimal", choices=(".", ","), metavar="MARK",
        help="the mark before the fraction of a number in a text file: , or . (.)")  # fmt: skip
    add("--no-header", dest="header", action="store_false",
        help="the first line holds no names; columns are then called 1, 2, and so on")  # fmt: skip
    add("--drop-missing", action="store_true",
        help="leave out rows in which a column that is used or the target is empty; otherwise "
        "these are an error, but gaps in tables of texts and numbers take part. Rows with gaps "
        "that gower compares stay, unless the target is empty")  # fmt: skip


def _add_objects(command: Command) -> None:
    """Add the options of a command that reads objects and compares them."""
    _add_file(command)
    add = command.add_argument_group("the similarity").add_argument
    add("--kernel", action="append", metavar="NAME",
        help="levenshtein, dtw, gaussian, ... (kreinlearn kernels lists them); precomputed or "
        "precomputed_dissimilarity for a matrix; auto compares the kernels that suit the objects. "
        "Without this flag fit and evaluate take auto; other commands, and estimators that take "
        "one kernel, take levenshtein for texts, gaussian for numbers and gower for both. "
        "COLUMN=NAME is the similarity of one column; repeat the flag for several similarities, of "
        "which a weighted sum is learned")  # fmt: skip
    add("--kernel-param", action="append", type=arguments.assignment, default=[],
        metavar="NAME=VALUE",
        help="a parameter of the kernel, such as width=2.5; may be repeated")  # fmt: skip


def _add_target(command: Command, what: str, needed: bool = False) -> None:
    add = command.add_argument
    add("--target", metavar="NAME",
        help=f"the column, or the array of a .npz file, {what}")  # fmt: skip
    add("--labels", type=Path, metavar="FILE", help="another file that holds the target")
    command.set_defaults(needs_target=needed)


def _add_task(add: Callable[..., Any]) -> None:
    add("--task", choices=TASKS, default="auto", help="what to learn (auto: as the target tells)")
    add("--landmarks", type=arguments.landmarks, default="auto", metavar="N",
        help="auto, all, a number, or a share such as 0.1 (auto: all, if time allows)")  # fmt: skip


def _add_spreadsheet(add: Callable[..., Any]) -> None:
    add("--spreadsheet", action="store_true",
        help="write an apostrophe before texts that a spreadsheet would run, as =1+1")  # fmt: skip


def _add_work(command: Command, *, memory: bool = True, seed: bool = True) -> None:
    add = command.add_argument_group("the work").add_argument
    if memory:
        add("--memory", type=arguments.memory, metavar="SIZE",
            help="how much memory may be used: 2GB (a quarter of what is free)")  # fmt: skip
    add("--jobs", type=arguments.jobs, metavar="N", help="the number of workers; -1: one per core")
    if seed:
        add("--seed", type=arguments.seed, default=0, metavar="N",
            help="the seed of everything that is drawn at random (0)")  # fmt: skip


def _add_talk(command: Command, json: str | None = None) -> None:
    group = command.add_argument_group("messages")
    if json is not None:
        group.add_argument("--json", action="store_true", help=json)
    group.add_argument("--force", action="store_true", help="replace files that exist")
    loud = group.add_mutually_exclusive_group()
    loud.add_argument("--quiet", action="store_true", help="print results and errors only")
    loud.add_argument("--verbose", action="store_true", help="print more")
    group.add_argument("--debug", action="store_true", help="print where an error arose")
