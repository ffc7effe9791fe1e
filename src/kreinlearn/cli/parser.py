"""The commands and their options; nothing that takes long to import is imported here."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from kreinlearn import __version__
from kreinlearn.cli import arguments
from kreinlearn.cli.examples import EPILOGS

Command = argparse.ArgumentParser
SHELLS = ("bash", "zsh", "fish")
TASKS = ("auto", "classification", "regression")


# What a flag takes and what --help says of it; with a slash, a short and a long name.


def _takes(metavar: str, help: str, type: Any = None, **more: Any) -> dict[str, Any]:
    return {"metavar": metavar, "help": help, "type": type, **more}


def _switch(help: str, action: str = "store_true", **more: Any) -> dict[str, Any]:
    return {"help": help, "action": action, **more}


# fmt: off
FLAGS: dict[str, dict[str, Any]] = {
    "model": _takes("MODEL", "the file that fit wrote", Path),
    "file": _takes("FILE", ".csv, .tsv, .jsonl, .parquet, .npy or .npz", Path),
    "shell": _takes("SHELL", ", ".join(SHELLS), choices=SHELLS),
    "--objects": _takes("KIND", f"only those for {', '.join(arguments.OBJECTS)}",
                        arguments.objects, choices=arguments.OBJECTS),
    "--column": _takes("NAME", "a column, or array, of the objects; repeat the flag for several "
                       "(all)", action="append"),
    "--id": _takes("NAME", "a column that names the rows, and is no part of the objects"),
    "--encoding": _takes("NAME", "of a text file (utf-8)", arguments.encoding),
    "--delimiter": _takes("MARK", "the character between columns: ';' or tab (found in the first "
                          "rows)", arguments.delimiter),
    "--decimal": _takes("MARK", "of numbers in a text file: , or . (.)", choices=(".", ",")),
    "--no-header": _switch("the first line holds no names; columns are called 1, 2, and so on",
                           "store_false", dest="header"),
    "--drop-missing": _switch("leave out rows with an empty cell, which is an error otherwise"),
    "--kernel": _takes("NAME", "see kreinlearn kernels; auto compares several (krein and evaluate: "
                       "auto); COLUMN=NAME compares one column; repeat the flag to learn a "
                       "weighted sum", action="append"),
    "--kernel-param": _takes("NAME=VALUE", "a parameter of the kernel, such as width=2.5",
                             arguments.assignment, action="append", default=[]),
    "--target": _takes("NAME", "the column, or array, that is to be predicted"),
    "--labels": _takes("FILE", "another file that holds the target", Path),
    "--task": _takes("TASK", "auto, classification or regression (auto: as the target tells)",
                     choices=TASKS, default="auto"),
    "--landmarks": _takes("N", "auto, all, a number, or a share such as 0.1 (auto: all, if time "
                          "allows)", arguments.landmarks, default="auto"),
    "--estimator": _takes("NAME", ", ".join(arguments.ESTIMATORS), arguments.estimator,
                          default=arguments.FRONT),
    "--learners": _takes("NAMES", f"with commas in between: {', '.join(arguments.LEARNERS)} (all)",
                         arguments.learners, action="extend"),
    "--cv": _takes("FOLDS", "folds that tune the penalties; not for krein", arguments.folds),
    "--time-limit": _takes("SECONDS", "of one core, which limits the landmarks (40); for krein "
                           "only", arguments.seconds),
    "--probabilities": _switch("let predict give probabilities, which krein has anyway"),
    "--conformal": _takes("METHOD", "for predict --coverage: split (a quarter is set aside) or "
                          "cv+ (slower)", choices=arguments.CONFORMAL),
    "--param": _takes("NAME=VALUE", "another parameter of the estimator, as class_weight=balanced",
                      arguments.assignment, action="append", default=[]),
    "--store": _takes("FOLDER", "keep kernel values there: a fit that was stopped goes on", Path),
    "--samples": _takes("N", "look at so many objects, drawn at random if there are more (1000)",
                        arguments.several, default=1000),
    "--scores": _switch("write decision values too"),
    "--coverage": _takes("SHARE", "write an interval, or a set of classes, that covers this share "
                         "of the truth; needs fit --conformal", arguments.coverage),
    "--novelty": _switch("write a p-value, small for a row unlike all; needs fit --conformal"),
    "--explain": _takes("N", "write the N landmarks most for, and most against, each prediction",
                        arguments.count),
    "--rank": _takes("K", "the number of dimensions, or auto: as few as are needed",
                     arguments.rank),
    "--tol": _takes("ERROR", "add landmarks until the relative error is below this, as 0.05",
                    arguments.share),
    "--clusters": _takes("K", "the number of groups, or auto: that with the largest silhouette "
                         "(auto)", arguments.clusters, default="auto"),
    "--spectrum": _takes("WAY", "negative eigenvalues: shift keeps the cost of the given distances "
                         "up to a constant, flip takes absolute values (shift)",
                         choices=("shift", "flip"), default="shift"),
    "-o/--output": _takes("FILE", "a .csv, .tsv, .jsonl or .parquet file", Path),
    "--spreadsheet": _switch("an apostrophe before texts that a spreadsheet would run, as =1+1"),
    "--model": _takes("MODEL", "write a model, which predict applies to rows", Path),
    "--report": _takes("FILE", "write a page that opens in a browser", Path),
    "--html": _takes("FILE", "write a report that opens in a browser", Path),
    "--markdown": _takes("FILE", "write the report as a .md file", Path),
    "--csv": _takes("FILE", "write the table as a CSV file", Path),
    "--memory": _takes("SIZE", "how much may be used: 2GB (a quarter of what is free)",
                       arguments.memory),
    "--jobs": _takes("N", "the number of workers; -1: one per core", arguments.jobs),
    "--seed": _takes("N", "of everything that is drawn at random (0)", arguments.seed, default=0),
    "--json": _switch("print what was found as one JSON object"),
    "--force": _switch("replace files that exist"),
    "--quiet": _switch("print results and errors only"),
}
OWN: dict[str, dict[str, Any]] = {  # where a command differs
    "inspect --target": {"help": "the column, or array, whose signal in the negative part is "
                         "measured"},
    "approximate --target": {"help": "the column, or array, to leave out"},
    "approximate --landmarks": {"help": "auto, all, a number, or a share such as 0.1 (auto: 100, "
                                "twice the rank)"},
    "cluster --landmarks": {"help": "auto, all, a number, or a share such as 0.1 (auto: all of up "
                            "to 1000)"},
    "cluster --target": {"help": "the column, or array, to leave out"},
    "evaluate --cv": {"help": "the number of folds (5)", "default": 5},
    "evaluate --time-limit": {"help": "for all learners; without it, slow ones get fewer objects "
                              "(about 100)"},
    "predict --probabilities": {"help": "write probabilities too; needs fit --probabilities, but "
                                "for krein"},
    "fit -o/--output": {"metavar": "MODEL", "help": "the file for the model", "required": True},
    "approximate -o/--output": {"help": "a file that ends in .npz", "required": True},
    "predict -o/--output": {"default": Path("-"), "help": "a .csv, .tsv, .jsonl or .parquet file, "
                            "or - for stdout (-)"},
}
_FILE = "file --column --id --encoding --delimiter --decimal --no-header --drop-missing "
_OBJECTS = _FILE + "--kernel --kernel-param --target "
_ENDS = "--memory --jobs --seed --json --force --quiet"
COMMANDS = {  # what each is for, how it is called, and its flags
    "inspect": ("tell what a similarity or dissimilarity is like", "FILE",
        _OBJECTS + "--labels --samples --html --jobs --seed --json --force --quiet"),
    "fit": ("learn from a file and write a model", "FILE --target NAME -o MODEL",
        _OBJECTS + "--labels --task --landmarks --estimator --time-limit --cv --probabilities "
        "--conformal --param --store -o/--output " + _ENDS),
    "predict": ("predict for every row of a file", "MODEL FILE",
        "model " + _FILE + "--scores --probabilities --coverage --novelty --explain -o/--output "
        "--spreadsheet --memory --jobs --force --quiet"),
    "evaluate": ("compare learners and baselines by cross-validation", "FILE --target NAME",
        _OBJECTS + "--labels --task --landmarks --learners --cv --time-limit --html --markdown "
        "--csv " + _ENDS),
    "approximate": ("write low-rank factors F diag(s) F' of the similarities of all objects",
        "FILE -o FACTORS", _OBJECTS + "--landmarks --rank --tol --store -o/--output " + _ENDS),
    "cluster": ("find groups of objects, without labels", "FILE",
        _OBJECTS + "--landmarks --clusters --spectrum -o/--output --spreadsheet --model --report "
        + _ENDS),
    "kernels": ("list the kernels and the objects that they take", "", "--objects"),
    "completion": ("print a script for your shell", "SHELL", "shell"),
}
# fmt: on


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
    for name, (what, usage, flags) in COMMANDS.items():
        command = commands.add_parser(
            name,
            help=what,
            usage=f"kreinlearn {name} {usage} [options]".replace("  ", " "),
            description=f"{what[0].upper()}{what[1:]}.",
            epilog=EPILOGS[name],
            formatter_class=Help,
            allow_abbrev=False,
        )
        for flag in flags.split():
            command.add_argument(*flag.split("/"), **(FLAGS[flag] | OWN.get(f"{name} {flag}", {})))
        needed = name in ("fit", "evaluate") if "--labels" in flags else None
        command.set_defaults(parser=command, needs_target=needed, store=None)
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
