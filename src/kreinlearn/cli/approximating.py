"""kreinlearn approximate: low-rank factors of all similarities, as arrays in a file."""

from __future__ import annotations

import argparse
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from kreinlearn.cli.messages import Talk
from kreinlearn.cli.output import replacing_folder, require_free, show_json, show_pairs
from kreinlearn.data.files import replacing

SUFFIXES = (".npz", ".zarr")
CHUNK = 2**20  # bytes of features in a chunk of a zarr array, about


def run(options: argparse.Namespace, talk: Talk) -> int:
    output = options.output
    if output.suffix not in SUFFIXES:
        options.parser.error(f"-o {output}: it must end in one of {', '.join(SUFFIXES)}")
    require_free(options, {"-o": output}, [options.file])
    from kreinlearn.cli import data
    from kreinlearn.data.sources.base import library
    from kreinlearn.estimators.predicting import predict_to

    if output.suffix == ".zarr":
        library("zarr")  # before any work
    given = data.load(options, talk, streams=True)
    model = _model(given.kernel, options, talk)
    with tempfile.TemporaryDirectory(dir=output.absolute().parent, prefix=".kreinlearn-") as home:
        features = Path(home) / "features.npy"
        model.fit(given.X)
        predict_to(model, given.X, features, "transform")
        others = {
            "signature": model.signature_,
            "eigenvalues": model.eigenvalues_,
            "landmarks": np.asarray(model.landmark_indices_),
        }
        (_write_npz if output.suffix == ".npz" else _write_zarr)(output, features, others)
    found = _found(model, given, options)
    if options.json:
        show_json(found)
    else:
        rows = [(name.replace("_", " "), value) for name, value in found.items()]
        show_pairs(str(output), rows[1:])
    return 0


def _model(kernel: str, options: argparse.Namespace, talk: Talk) -> Any:
    from kreinlearn.cli import kernels
    from kreinlearn.estimators.transformer import KreinNystroem

    return KreinNystroem(
        kernel,
        kernel_params=kernels.params_of(options) or None,
        n_landmarks=options.landmarks,
        rank=options.rank,
        tol=options.tol,
        store=options.store,
        memory_budget=options.memory,
        n_jobs=options.jobs,
        random_state=options.seed,
        verbose=talk.level,
    )


def _found(model: Any, given: Any, options: argparse.Namespace) -> dict[str, Any]:
    error = model.estimate_error(given.X, random_state=options.seed)
    return {
        "output": str(options.output),
        "kernel": given.kernel,
        "n_objects": given.n,
        "n_landmarks": model.n_landmarks_,
        "rank": model.rank_,
        "negative_dimensions": int(np.sum(model.signature_ < 0)),
        "relative_error": float(f"{error.relative:.4g}"),
    }


def _write_npz(output: Path, features: Path, others: dict[str, Any]) -> None:
    with replacing(output) as temporary, zipfile.ZipFile(temporary, "x") as archive:
        archive.write(features, "features.npy")
        for name, array in others.items():
            with archive.open(f"{name}.npy", "w") as file:
                np.lib.format.write_array(file, array, allow_pickle=False)


def _write_zarr(output: Path, features: Path, others: dict[str, Any]) -> None:
    from kreinlearn.data.sources.base import library

    zarr = library("zarr")
    codecs = [zarr.codecs.ZstdCodec(), zarr.codecs.Crc32cCodec()]  # a flipped bit is an error
    with replacing_folder(output) as temporary:
        group = zarr.open_group(str(temporary), mode="w-", zarr_format=3)
        for name, array in {"features": np.load(features, mmap_mode="r"), **others}.items():
            rows = max(1, CHUNK // max(1, array.nbytes // max(1, len(array))))
            made = group.create_array(
                name, shape=array.shape, dtype=array.dtype, compressors=codecs,
                chunks=(min(rows, max(1, len(array))), *array.shape[1:]),
                config={"write_empty_chunks": True},
            )  # fmt: skip
            for start in range(0, len(array), rows):
                made[start : start + rows] = array[start : start + rows]
