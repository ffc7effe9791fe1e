"""Data sets of MATLAB as the .npz files that the data folder holds."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import scipy.io


def convert(source: Path, target: Path, names: dict[str, str]) -> dict[str, tuple[int, ...]]:
    """Write the arrays of a .mat file to a .npz file; returns their shapes by name.

    ``names`` maps a new name to that of a variable; without it, all variables keep their names.
    Columns of one number each become vectors, as ``y`` is one.
    """
    try:
        stored = scipy.io.loadmat(source)
    except (NotImplementedError, ValueError, TypeError) as error:
        raise OSError(f"{source} cannot be read ({error}); save it with -v7") from error
    chosen = names or {name: name for name in stored if not name.startswith("__")}
    if missing := [name for name in chosen.values() if name not in stored]:
        raise OSError(f"{source} has no variable {missing[0]}; there are {sorted(stored)[3:]}")
    arrays = {new: np.asarray(stored[name]) for new, name in chosen.items()}
    arrays = {k: a.ravel() if 1 in a.shape[:2] and a.ndim == 2 else a for k, a in arrays.items()}
    if objects := [name for name, array in arrays.items() if array.dtype.hasobject]:
        raise OSError(f"{source}: {objects[0]} is no array of numbers or texts; name the others")
    np.savez_compressed(target, **arrays)  # type: ignore[arg-type]
    return {name: array.shape for name, array in arrays.items()}


def main(argv: Sequence[str]) -> int:
    """Convert one file."""
    parser = argparse.ArgumentParser(prog="python -m reproduction convert", description=__doc__)
    parser.add_argument("source", type=Path, help="a .mat file")
    parser.add_argument("target", type=Path, help="a .npz file, such as dissimilarity/protein.npz")
    parser.add_argument("names", nargs="*", help="D=dis y=labels: new names of variables")
    options = parser.parse_args(argv)
    if options.target.suffix != ".npz" or not all("=" in name for name in options.names):
        parser.error("the target ends in .npz, and names are given as NEW=VARIABLE")
    names = dict(name.split("=", 1) for name in options.names)
    for name, shape in convert(options.source, options.target, names).items():
        print(f"{name}: {' x '.join(map(str, shape))}", file=sys.stdout)
    return 0
