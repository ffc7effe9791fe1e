"""kreinlearn completion: a script that lets a shell complete words, made from the parser."""

from __future__ import annotations

import argparse
from pathlib import Path

from kreinlearn.cli.arguments import ESTIMATORS
from kreinlearn.cli.kernels import names
from kreinlearn.cli.parser import commands_of, parser
from kreinlearn.data.tiles import library


def run(options: argparse.Namespace) -> int:
    shtab = library("shtab", "completion")
    known, words = parser(), {"kernel": names(), "estimator": list(ESTIMATORS)}
    for command in commands_of(known).values():
        for action in command._actions:
            action.choices = action.choices or words.get(action.dest)
            if action.type is Path:
                vars(action)["complete"] = shtab.FILE
    print(shtab.complete(known, options.shell))
    return 0
