"""What must not change while the house is rebuilt: python -m tests.kept [--record] [--only PART]

Every part runs, and what comes out is compared with ``recorded/``. Predictions are equal to 1e-10
where the processor and the libraries are those of the recording, and to 1e-6 elsewhere; printed
tables and peaks of memory are compared on such a machine alone. A peak may fall, and rise by 15 %.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_info

from tests.kept import predictions, promises, tables
from tests.kept.predictions import UNSTEADY

RECORDED = Path(__file__).parent / "recorded"
LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba", "rapidfuzz", "POT")
SHOWN = 8  # differences


class Part(NamedTuple):
    run: Callable[[], dict[str, Any]]
    here: float  # how far numbers may be apart on a machine like that of the recording
    elsewhere: float | None  # on another one; None: nothing is compared there
    may_fall: bool = False


PARTS = {
    "predictions": Part(predictions.predictions, 1e-10, 1e-6),
    "kernels": Part(predictions.values, 1e-10, 1e-6),
    "looks": Part(predictions.looks, 1e-10, 1e-6),
    "bits": Part(promises.bits, 0, 0),
    "evaluations": Part(promises.evaluations, 0, 0),
    "flips": Part(promises.flips, 0, 0),
    "faults": Part(promises.faults, 0, 0),
    "exits": Part(promises.exits, 0, 0),
    "peaks": Part(promises.peaks, 0.15, None, may_fall=True),
    "benchmarks": Part(tables.benchmarks, 0, None),
    "reproduction": Part(tables.reproduction, 0, None),
}


def machine() -> dict[str, str]:
    """What rounding and memory depend on."""
    found = {"system": platform.system(), "processor": platform.machine()}
    found["python"] = ".".join(platform.python_version_tuple()[:2])
    blas = {f"{one['internal_api']} {one.get('architecture')}" for one in threadpool_info()}
    found["blas"] = ", ".join(sorted(one for one in blas if "openmp" not in one))
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "missing"
    return found


def recorded(name: str) -> tuple[dict[str, Any], dict[str, str]]:
    """What a part gave, and the machine."""
    text = json.loads((RECORDED / f"{name}.json").read_text(encoding="utf8"))
    return text["found"], text["machine"]


def record(name: str, found: dict[str, Any]) -> None:
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in found.items()]
    body = ",\n".join(lines)
    text = f'{{"machine": {json.dumps(machine())},\n"found": {{\n{body}\n}}}}\n'
    (RECORDED / f"{name}.json").write_text(text, encoding="utf8")


def numeric(value: Any) -> Any:
    """An array of numbers, or None."""
    try:
        array = np.asarray(value)
    except ValueError:  # lists of several lengths
        return None
    return array.astype(float) if array.dtype.kind in "fiu" and array.size else None


def differences(
    kept: Any, found: Any, tolerance: float, may_fall: bool = False, where: str = ""
) -> Iterator[str]:
    """A line for each place where two results differ."""
    if isinstance(kept, dict) and isinstance(found, dict):
        for key in {**kept, **found}:
            place = f"{where}: {key}" if where else key
            if key not in kept or key not in found:
                yield f"{place}: {'new' if key in found else 'gone'}"
            else:
                yield from differences(kept[key], found[key], tolerance, may_fall, place)
        return
    a, b = numeric(kept), numeric(found)
    if a is not None and b is not None and a.shape == b.shape:
        by = b - a if may_fall else np.abs(b - a)
        scale = max(1.0, float(np.abs(a).max()))
        if not float(by.max()) <= tolerance * scale and not np.array_equal(a, b, equal_nan=True):
            yield f"{where}: apart by {by.max() / scale:.2g}: {short(kept)} -> {short(found)}"
    elif isinstance(kept, list) and isinstance(found, list) and len(kept) == len(found):
        for i, (one, other) in enumerate(zip(kept, found, strict=True)):
            yield from differences(one, other, tolerance, may_fall, f"{where} [{i}]")
    elif kept != found:
        yield f"{where}: {short(kept)} -> {short(found)}"


def short(value: Any) -> str:
    return text if len(text := json.dumps(value)) <= 160 else f"{text[:157]}..."


def compared(name: str, found: dict[str, Any]) -> list[str] | None:
    """The differences from the recording; None if it is of a machine with which none compares."""
    kept, there = recorded(name)
    part = PARTS[name]
    same = there == machine()
    tolerance = part.here if same else part.elsewhere
    if tolerance is None:
        return None
    apart = differences(kept, found, tolerance, part.may_fall)
    unsteady = tuple(f"{group}: {name}" for group, names in UNSTEADY.items() for name in names)
    return [line for line in apart if same or not line.startswith(unsteady)]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.kept", description=__doc__)
    parser.add_argument("--record", action="store_true", help="write what comes out, anew")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART",
                        help=f"of {', '.join(PARTS)}")  # fmt: skip
    options = parser.parse_args()
    changed = False
    for name in options.only:
        begun = time.perf_counter()
        found = json.loads(json.dumps(PARTS[name].run()))
        seconds = f"{time.perf_counter() - begun:.0f} s"
        if options.record:
            record(name, found)
            print(f"{name}: recorded ({seconds})", flush=True)
            continue
        apart = compared(name, found)
        changed |= bool(apart)
        verdict = "changed" if apart else "kept" if apart == [] else "of another machine"
        print(f"{name}: {verdict} ({seconds})", flush=True)
        for line in (apart or [])[:SHOWN]:
            print(f"  {line}")
        if apart and len(apart) > SHOWN:
            print(f"  and {len(apart) - SHOWN} more")
    return int(changed)


if __name__ == "__main__":
    sys.exit(main())
