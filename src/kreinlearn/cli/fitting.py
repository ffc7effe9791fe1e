"""kreinlearn fit: a model from a file."""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

from kreinlearn.cli.messages import Talk
from kreinlearn.cli.output import require_free, show_json, show_pairs
from kreinlearn.cli.values import ESTIMATORS
from kreinlearn.data.reading import TASKS, Target


def run(options: argparse.Namespace, talk: Talk) -> int:
    require_free(options, {"-o": options.output}, [options.file, options.labels])
    import kreinlearn
    from kreinlearn.cli import data

    name = _regressor_or_classifier(options)
    _built([name] if name else _may_be_meant(options), options, options.kernel or "gaussian", talk)
    given = data.load(options, talk, streams=True)
    target = given.target
    assert target is not None
    name = name or _by_task(options, target)
    talk.note(f"{target.name}: {target.why} -> {name}")
    model = _built([name], options, given.kernel, talk)
    start = time.perf_counter()
    model.fit(given.X, target.values)
    seconds = time.perf_counter() - start
    talk.detail(f"fitted in {seconds:.2g} s")
    data.remember_columns(model, given)
    model.set_params(verbose=0, store=None)
    kreinlearn.save(model, options.output)
    found = _found(model, given.n, target, seconds, options)
    if options.json:
        show_json(found)
    else:
        show_pairs(str(options.output), _rows(found))
    return 0


def _regressor_or_classifier(options: argparse.Namespace) -> str | None:
    """The class, if --estimator names one: then it says what the task is."""
    for pair in ESTIMATORS.values():
        if options.estimator in pair:
            task = TASKS[pair.index(options.estimator)]
            if options.task not in ("auto", task):
                options.parser.error(
                    f"{options.estimator} is for {task}, not --task {options.task}"
                )
            options.task = task
            name: str = options.estimator
            return name
    return None


def _by_task(options: argparse.Namespace, target: Target) -> str:
    name = ESTIMATORS[options.estimator][TASKS.index(target.task)]
    if name is None:
        raise ValueError(
            f"--estimator {options.estimator} learns classes, and {target.name} holds numbers; "
            "give --task classification if these are classes, or another estimator"
        )
    return name


def _may_be_meant(options: argparse.Namespace) -> list[str]:
    """Classes among which the target will choose."""
    pairs = zip(TASKS, ESTIMATORS[options.estimator], strict=True)
    return [name for task, name in pairs if name and options.task in ("auto", task)]


def _built(names: list[str], options: argparse.Namespace, kernel: str, talk: Talk) -> Any:
    """The first that takes all parameters; if there is none, the call is wrong."""
    refused = []
    for name in names:
        try:
            model = _estimator(name, options, kernel, talk)
            model._validate_params()
        except ValueError as error:
            refused.append(" ".join(str(error).split()))
        else:
            return model
    if not refused:
        refused = [f"--estimator {options.estimator} is not for --task {options.task}"]
    return options.parser.error(refused[0])


def _estimator(name: str, options: argparse.Namespace, kernel: str, talk: Talk) -> Any:
    import kreinlearn

    estimator = getattr(kreinlearn, name)
    given = {
        "kernel_params": dict(options.kernel_param) or None,
        "n_landmarks": options.landmarks,
        "cv": options.cv,
        "probability": options.probabilities,
        "store": options.store,
        "memory_budget": options.memory,
        "n_jobs": options.jobs,
        "random_state": options.seed,
        "verbose": talk.level,
    }
    known = estimator._get_param_names()
    for flag, parameter in (("--probabilities", "probability"), ("--landmarks", "n_landmarks")):
        default = {"probability": False, "n_landmarks": "auto"}[parameter]
        if parameter not in known and given.pop(parameter) != default:
            raise ValueError(f"{flag}: {name} has none")
    for parameter, value in options.param:
        if parameter not in known or parameter in given:
            free = sorted(set(known) - given.keys() - {"kernel"})
            raise ValueError(f"--param {parameter}: {name} has {', '.join(free)}")
        given[parameter] = value
    return estimator(kernel, **given)


# What was learned


def _found(
    model: Any, n: int, target: Target, seconds: float, options: argparse.Namespace
) -> dict[str, Any]:
    signature = getattr(model, "signature_", None)
    return {
        "output": str(options.output),
        "estimator": type(model).__name__,
        "kernel": model.kernel,
        "target": target.name,
        "task": target.task,
        "n_objects": n,
        "classes": getattr(model, "classes_", None),
        "n_landmarks": model.n_landmarks_,
        "rank": getattr(model, "rank_", None),
        "negative_dimensions": None if signature is None else int(np.sum(signature < 0)),
        "similarity": getattr(model, "similarity_", None),
        "lambda_plus": getattr(model, "lambda_plus_", None),
        "lambda_minus": getattr(model, "lambda_minus_", None),
        "cv_loss": getattr(model, "cv_loss_", None),
        "seconds": round(seconds, 3),
    }


def _rows(found: dict[str, Any]) -> list[tuple[str, str]]:
    rows = [(name.replace("_", " "), value) for name, value in found.items() if name != "output"]
    return [(name, _cell(value)) for name, value in rows if value is not None]


def _cell(value: Any) -> str:
    if isinstance(value, np.ndarray):
        shown = ", ".join(map(str, value[:12].tolist()))
        return f"{len(value)}: {shown}{', ...' * (len(value) > 12)}"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
