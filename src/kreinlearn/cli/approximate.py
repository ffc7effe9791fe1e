"""kreinlearn approximate: write low-rank factors of all similarities to a file of arrays."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from kreinlearn.cli.messages import Talk
from kreinlearn.cli.output import require_free, show_findings
from kreinlearn.data.writing import folder_beside, write_npz


def run(options: argparse.Namespace, talk: Talk) -> int:
    output = options.output
    if output.suffix != ".npz":
        options.parser.error(f"-o {output}: it must end in .npz")
    require_free(options, {"-o": output}, [options.file])
    from kreinlearn.cli import data
    from kreinlearn.cli.fit import fit_parameters
    from kreinlearn.estimators.predicting import predict_to
    from kreinlearn.estimators.transformer import KreinNystroem

    given = data.load(options, talk, streams=True)
    more = fit_parameters(options, talk)
    model = KreinNystroem(given.kernel, rank=options.rank, tol=options.tol, **more)
    with folder_beside(output) as home:
        model.fit(given.X)
        features = predict_to(model, given.X, home / "features.npy", "transform")
        arrays = {
            "features": np.load(features, mmap_mode="r"),
            "signature": model.signature_,
            "eigenvalues": model.eigenvalues_,
            "landmarks": np.asarray(model.landmark_indices_),
        }
        write_npz(output, arrays)
        del arrays  # Windows removes no file that is still mapped
    show_findings(_findings(model, given, options), options)
    return 0


def _findings(model: Any, given: Any, options: argparse.Namespace) -> dict[str, Any]:
    error = model.estimate_error(given.X, random_state=options.seed)
    return {
        "output": str(options.output),
        "kernel": given.shown,
        "n_objects": given.n,
        "n_landmarks": model.n_landmarks_,
        "rank": model.rank_,
        "negative_dimensions": int(np.sum(model.signature_ < 0)),
        "relative_error": float(f"{error.relative:.4g}"),
    }
