"""kreinlearn fit: learn a model from a file; and estimators as the options describe them."""

from __future__ import annotations

import argparse
import shlex
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from kreinlearn.cli.arguments import ESTIMATORS, close_to, kernel_parameters
from kreinlearn.cli.messages import Talk
from kreinlearn.cli.output import INSTEAD, command, require_free, show_findings
from kreinlearn.data.memory import Resources
from kreinlearn.data.table import Table
from kreinlearn.data.targets import TASKS

if TYPE_CHECKING:
    from kreinlearn.cli.data import Given
    from kreinlearn.evaluation.expected import Expected

# What --param may set beside the parameters of an estimator: parts of those that have several.
PARTS = {
    "scheme": "landmarks",
    "core": "landmarks",
    "rank": "landmarks",
    "pool": "landmarks",
}


def run(options: argparse.Namespace, talk: Talk) -> int:
    require_free(options, {"-o": options.output}, [options.file, options.labels])
    import kreinlearn
    from kreinlearn.cli import data, kernels
    from kreinlearn.estimators.conformal import models_in

    classes, named = _classes(options), kernels.named(options)
    _built(list(classes.values()), options, "gaussian" if named is None else named.spec, talk)
    given = data.load(options, talk, streams=True)
    target = given.target
    assert target is not None
    if target.task not in classes:
        raise ValueError(
            f"--estimator {options.estimator} learns classes, and {target.name} holds numbers; "
            "give --task classification if these are classes, or another estimator"
        )
    name = classes[target.task]
    talk.note(f"{target.name}: {target.why} -> {name}")
    model = _built([name], options, given.kernel, talk)
    start = time.perf_counter()
    model.fit(given.X, target.values, conformal=options.conformal)
    seconds = time.perf_counter() - start
    data.remember(model, given)
    for one in models_in(model):
        one.set_params(verbose=0, resources=replace(model.resources, store=None))
    kreinlearn.save(model, options.output)
    expected = _expected(model, given, seconds, options, talk)
    if not options.json and expected is not None:
        print(expected.in_words(target.name))
    show_findings({**_findings(model, given, seconds, options), **_plain(expected)}, options)
    apply = f"next: kreinlearn predict {shlex.quote(str(options.output))} NEW_FILE -o out.csv"
    talk.note(apply if expected is None or expected.learned else INSTEAD)
    talk.note(f"compare: {command('evaluate', options, '--html report.html')}")
    return 0


def _expected(
    model: Any, given: Given, seconds: float, options: argparse.Namespace, talk: Talk
) -> Expected | None:
    """The error that new objects will have: that of the fit, or that of further fits of parts.

    If it is not known, a note says why; the model is there all the same.
    """
    from kreinlearn.evaluation.expected import Expected, cross_validated

    assert given.target is not None
    y = given.target.values
    if hasattr(model, "expected_error_"):
        return Expected.of(y, given.target.task, model.expected_error_, model.expected_error_std_)
    unknown = "the error to expect is not known"
    if isinstance(given.X, Table):
        talk.note(f"{unknown}, as the objects stay in the file; evaluate a part of it")
        return None
    try:
        return cross_validated(model, given.X, y, given.target.task, seconds, options.seed)
    except ValueError as error:
        talk.note(f"{unknown} (cross-validation: {error})")
        return None


def _plain(expected: Expected | None) -> dict[str, Any]:
    if expected is None:
        return {}
    return {"expected_error": expected.error, "expected_error_std": expected.std, "r2": expected.r2}


def _classes(options: argparse.Namespace) -> dict[str, str]:
    """The classes that --estimator may mean, by task; a class that it names decides on the task."""
    for pair in ESTIMATORS.values():
        if options.estimator in pair:
            task = TASKS[pair.index(options.estimator)]
            if options.task not in ("auto", task):
                options.parser.error(
                    f"{options.estimator} is for {task}, not --task {options.task}"
                )
            options.task = task
            return {task: options.estimator}
    pairs = zip(TASKS, ESTIMATORS[options.estimator], strict=True)
    meant = {task: name for task, name in pairs if name and options.task in ("auto", task)}
    if not meant:
        options.parser.error(f"--estimator {options.estimator} is not for --task {options.task}")
    return meant


# Estimators


def _built(names: list[str], options: argparse.Namespace, kernel: Any, talk: Talk) -> Any:
    """Return the first estimator that takes all parameters; if there is none, the call is wrong."""
    from kreinlearn.estimators.access import check_parameters

    refused = []
    for name in names:
        try:
            model = _estimator(name, options, kernel, talk)
            check_parameters(model)
        except ValueError as error:
            refused.append(" ".join(str(error).split()))
        else:
            return model
    return options.parser.error(refused[0])


def _estimator(name: str, options: argparse.Namespace, kernel: Any, talk: Talk) -> Any:
    import kreinlearn

    estimator = getattr(kreinlearn, name)
    given = {
        **fit_parameters(options, talk),
        "cv": options.cv,
        "time_limit": options.time_limit,
        "probability": options.probabilities,
    }
    known = estimator().get_params(deep=False).keys()
    if hasattr(estimator(), "predict_proba"):  # without being asked for
        given["probability"] = False
    for flag, parameter, default in (
        ("--probabilities", "probability", False),
        ("--landmarks", "landmarks", kreinlearn.Landmarks()),
        ("--cv", "cv", None),
        ("--time-limit", "time_limit", None),
    ):
        if parameter not in known and given.pop(parameter) != default:
            able = "krein" if parameter == "time_limit" else "ridge"
            other = f", or add --estimator {able}" if options.estimator != able else ""
            raise ValueError(f"{name} takes no {flag}; leave it out{other}")
    parts = {part: whole for part, whole in PARTS.items() if whole in given}
    free = sorted((known | parts.keys()) - given.keys() - {"kernel"})
    for parameter, value in options.param:
        if parameter not in free:
            meant = f"{name} has {', '.join(free)}; {close_to(parameter, free)}".removesuffix("; ")
            raise ValueError(f"--param {parameter}: {meant}")
        if parameter in parts:
            whole = parts[parameter]
            given[whole] = replace(given[whole], **{parameter: value})
        else:
            given[parameter] = value
    return estimator(kernel, **given)


def fit_parameters(options: argparse.Namespace, talk: Talk) -> dict[str, Any]:
    """Return the parameters that all estimators have, from the flags of the same meaning."""
    from kreinlearn.nystrom.landmarks import Landmarks

    return {
        **kernel_parameters(options, talk.level),
        "landmarks": Landmarks(options.landmarks),
        "resources": Resources(options.memory, options.store),
    }


# What was learned


def _findings(
    model: Any, given: Given, seconds: float, options: argparse.Namespace
) -> dict[str, Any]:
    target = given.target
    assert target is not None
    signature = getattr(model, "signature_", None)
    learned = (  # the error that is expected is said before
        "decision", "similarity", "kernel_weights", "kernel_similarities", "lambda_plus",
        "lambda_minus", "cv_loss", "part_weights",
    )  # fmt: skip
    return {
        "output": str(options.output),
        "estimator": type(model).__name__,
        "kernel": given.shown,
        "target": target.name,
        "task": target.task,
        "conformal": options.conformal,
        "n_objects": given.n,
        "classes": getattr(model, "classes_", None),
        "n_landmarks": model.n_landmarks_,
        "rank": getattr(model, "rank_", None),
        "negative_dimensions": None if signature is None else int(np.sum(signature < 0)),
        **{name: getattr(model, f"{name}_", None) for name in learned},
        "seconds": round(seconds, 3),
    }
