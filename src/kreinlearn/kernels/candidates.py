"""The kernels that ``kernel="auto"`` compares, by the kind of objects.

Which distance suits some objects is not known before a fit. So every kind of objects has a short
list of kernels that see different things in them. A learner compares these, and adds up those that
help. Kernels whose library is not installed are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Set, Sized
from datetime import date
from importlib.util import find_spec
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp

from kreinlearn._warnings import warn
from kreinlearn.data.dates import date_order
from kreinlearn.data.frames import column_names, is_missing, values_of_column
from kreinlearn.data.opening import collected, is_path, opened
from kreinlearn.data.table import Table
from kreinlearn.data.tiles import length, objects_of, take
from kreinlearn.kernels._graphs import is_attributed
from kreinlearn.kernels.alignment import SmithWaterman
from kreinlearn.kernels.attributed import SlicedWL, WassersteinWL
from kreinlearn.kernels.base import Kernel, given
from kreinlearn.kernels.convolutions import Convolutions
from kreinlearn.kernels.fields import Field
from kreinlearn.kernels.graphs import ShortestPath, WeisfeilerLehman, WLDistance
from kreinlearn.kernels.ngrams import NGrams
from kreinlearn.kernels.objects import ModifiedHausdorff
from kreinlearn.kernels.positions import WeightedDegree
from kreinlearn.kernels.scikit import SklearnMetric
from kreinlearn.kernels.series import DTW, ERP, MSM, DerivativeDTW, ShapeDTW
from kreinlearn.kernels.sets import JaccardSets, Tversky
from kreinlearn.kernels.shapes import Procrustes, Turning
from kreinlearn.kernels.strings import Hamming, JaroWinkler, Levenshtein
from kreinlearn.kernels.tables import Gower
from kreinlearn.kernels.vectors import Gaussian

AUTO = "auto"  # in place of a kernel
NOTHING = "nothing"  # the kind of a list without entries
LOOKED_AT = 100  # objects that say of what kind all are
MANY = 20_000  # vectors from which on "auto" is the Gaussian kernel, whose values are fast
WINDOW = 0.1  # of elastic distances
SHORT = 3  # points that the derivative of a series needs
AMINO_ACIDS = frozenset("ACDEFGHIKLMNPQRSTVWY")
UNSURE = frozenset("BXZ")  # letters of proteins that stand for more than one amino acid
ENOUGH = 15  # amino acids that proteins have; DNA with its letters for unsure bases has 14
FLAT = (2, 3)  # coordinates of points: such arrays may be series, sets of points or contours

KINDS: dict[str, tuple[str | None, Callable[[], list[Kernel]]]] = {  # library, kernels
    "vectors": (None, lambda: [SklearnMetric(name) for name in ("euclidean", "manhattan")]),
    "sparse vectors": (None, lambda: [SklearnMetric(name) for name in ("euclidean", "cosine")]),
    "texts": (None, lambda: [Levenshtein(), Levenshtein(normalized=True), JaroWinkler()]),
    "n-grams": (None, lambda: [NGrams(), NGrams(idf=True, sublinear=True)]),
    "places": (None, lambda: [WeightedDegree(pad=True)]),  # of texts of one length
    "differences": (None, lambda: [Hamming()]),
    "proteins": ("parasail", lambda: [SmithWaterman(normalized=True, unknown="X")]),
    "series": (
        None,
        lambda: [kind(window=WINDOW) for kind in (DTW, DerivativeDTW, ShapeDTW, MSM, ERP)],
    ),
    "points": (None, lambda: [ModifiedHausdorff()]),
    "contours": (None, lambda: [Procrustes(reflect=True), Turning()]),
    "graphs": (
        None,
        lambda: [
            WLDistance(metric="bray_curtis"), WeisfeilerLehman(), ShortestPath(),
        ],
    ),
    "attributes": (  # of nodes of graphs; their labels are no texts, and edges count by themselves
        None,
        lambda: [SlicedWL(), WLDistance(metric="bray_curtis", labelled=False)],
    ),
    "transport": ("ot", lambda: [WassersteinWL()]),
    "sets": (None, lambda: [JaccardSets(), Tversky()]),
}  # fmt: skip


def candidates_for(X: Any) -> list[Kernel]:
    """Kernels that are worth comparing on X: whatever ``fit`` takes.

    A list or a column holds objects, unless its entries are lists of numbers of one length, which
    are rows. A frame or a file of a table holds records, unless all of it are numbers, or it has
    one column alone. Everything else holds vectors: arrays, sparse matrices, other files, and
    collections on workers.
    """
    X = collected(X)
    first = X[0] if isinstance(X, list | tuple) and len(X) else X
    if hasattr(first, "__dask_graph__"):  # a collection, or the first of delayed blocks
        n_axes = getattr(first, "ndim", 2)  # what a delayed block has is delayed, too
        if isinstance(n_axes, int) and n_axes == 1:
            raise ValueError(
                'kernel="auto" looks at no objects on Dask; name a kernel, such as '
                'kernel="levenshtein" or "ngrams" for texts, or pass X.compute()'
            )
        return [Gaussian()]
    table = opened(X) if is_path(X) else X
    if isinstance(table, Table) and len(table) and not table.holds_numbers():
        return _for_table(table)
    if isinstance(X, list | tuple) and _are_rows(X):
        X = np.asarray(X)
    if isinstance(X, list | tuple) or getattr(X, "ndim", 2) == 1 or hasattr(X, "to_list"):
        return _for_objects(X)
    if hasattr(X, "columns") and not _is_complete(X):
        names = column_names(X) or range(X.shape[1])
        return _for_fields({name: list(values_of_column(X, i)) for i, name in enumerate(names)})
    if hasattr(X, "__array__") and not hasattr(X, "shape"):
        X = np.asarray(X)
    if sp.issparse(X) and X.shape[0] <= MANY:
        return _of("sparse vectors")
    if (isinstance(X, np.ndarray) or hasattr(X, "columns")) and X.shape[0] <= MANY:
        return _of("vectors")
    return [Gaussian()]  # vectors in files, on workers, or very many


def _for_table(table: Table) -> list[Kernel]:
    """Kernels for the rows of a file, by its first block of rows."""
    rows = table.as_records(next(table.blocks()), table.split()[0])
    fields, names = columns_of(rows), table.names
    return _for_objects(fields[names[0]]) if len(names) == 1 else _for_fields(fields)


def _are_rows(X: Any) -> bool:
    """Whether X is a list of lists of numbers, all of one length: a matrix, as scikit-learn has it.

    A list of arrays is a list of series.
    """
    if not all(isinstance(x, list | tuple) for x in X) or len({len(x) for x in X}) != 1:
        return False
    return all(isinstance(value, Real) for x in X for value in x)


def _is_complete(X: Any) -> bool:
    """Whether all columns of a frame hold numbers, none of them missing."""
    values = np.asarray(X)
    return values.dtype.kind in "fiub" and bool(np.isfinite(values).all())


def _of(kind: str) -> list[Kernel]:
    """The kernels of a kind whose library is installed."""
    needed, made = KINDS[kind]
    return made() if needed is None or find_spec(needed) is not None else []


def _for_objects(X: Any) -> list[Kernel]:
    """Kernels for a sequence of objects, all of one kind."""
    X = objects_of(X)  # a column may have an index of its own
    n = length(X)
    places = np.unique(np.linspace(0, max(n - 1, 0), min(n, LOOKED_AT)).astype(np.intp))
    some = list(objects_of(take(X, places)))
    kinds = {kind_of(x): i for i, x in zip(places, some, strict=True)}
    if len(kinds) > 1:
        kinds.pop(NOTHING, None)  # a list without entries may be of any kind
    if len(kinds) != 1:
        said = ", ".join(f"object {i} is {given(X[int(i)])}" for i in kinds.values())
        raise ValueError(
            f'kernel="auto" takes objects of one kind, and {said or "there are none"}; name a '
            "kernel that takes all of them, or pass pairwise(f) of a function of your own"
        )
    (kind,) = kinds
    if kind == "records":
        return _for_fields(columns_of(list(X)))
    if kind == "texts":
        kernels = _of("texts") + _of("n-grams") + _by_places(X) + _by_alignment(X)
    elif kind == "arrays":
        sized = (isinstance(x, list | tuple) or np.ndim(x) > 0 for x in X)
        shortest = min(len(x) if known else 0 for x, known in zip(X, sized, strict=True))
        kernels = _for_arrays([np.asarray(x, dtype=np.float64) for x in some], shortest)
    elif kind == "graphs" and any(map(is_attributed, some)):
        kernels = _of("attributes") + _of("transport")
    else:
        kernels = _of(kind)
    return kernels


def kind_of(x: Any) -> str:
    """What an object is: "texts", "sets", "records", "graphs" or "arrays" of numbers."""
    if isinstance(x, str | bytes):
        return "texts"
    if isinstance(x, Set) and not isinstance(x, Mapping):
        return "sets"
    if isinstance(x, Mapping):
        return "records"
    if hasattr(x, "adj") or _is_graph(x):
        return "graphs"  # of networkx, or (labels, edges)
    if isinstance(x, list | tuple | np.ndarray):
        if not len(x):
            return NOTHING
        if all(isinstance(token, str) for token in x):
            return "texts"  # a sequence of tokens
        if _is_array(x):
            return "arrays"
        if isinstance(x, tuple) and all(_is_plain(value) for value in x):
            return "records"
    raise ValueError(
        f'kernel="auto" does not know objects such as {given(x)}; it knows texts, sequences of '
        "tokens, sets, records, graphs, and arrays of numbers (series, sets of points, contours); "
        "pass pairwise(f) of a function of your own as kernel"
    )


def are_records(X: list[Any]) -> bool:
    """Whether the first of some objects is a record: a mapping, or a tuple of plain values."""
    try:
        return kind_of(X[0]) == "records"
    except ValueError:
        return False


def _is_graph(x: Any) -> bool:
    """Whether an object is a pair of labels and edges, of which there may be none."""
    if not isinstance(x, tuple) or len(x) != 2 or isinstance(x[0], str | Real):
        return False
    labels, edges = x
    if not all(isinstance(one, list | tuple | np.ndarray) for one in (labels, edges)):
        return False
    return len(edges) == 0 or all(isinstance(e, list | tuple | np.ndarray) for e in edges)


def _is_array(x: Any) -> bool:
    try:
        values = np.asarray(x)
    except ValueError:  # rows of unequal length
        return False
    return values.ndim in (1, 2) and values.dtype.kind in "fiub" and values.size > 0


def _by_places(X: Any) -> list[Kernel]:
    """Kernels that compare texts place by place, if all of X have one length of at least 2.

    They take new texts of other lengths, too.
    """
    lengths = {len(x) if isinstance(x, Sized) else 0 for x in X}
    return _of("differences") + _of("places") if len(lengths) == 1 and min(lengths) > 1 else []


def _by_alignment(X: Any) -> list[Kernel]:
    """Kernels of proteins, if the letters of all texts are those of amino acids, and most occur."""
    letters = set().union(*X) if all(isinstance(x, str) for x in X) else set()
    proteins = letters <= AMINO_ACIDS | UNSURE and len(letters & AMINO_ACIDS) >= ENOUGH
    return _of("proteins") if proteins else []


def _for_arrays(arrays: list[Any], shortest: int) -> list[Kernel]:
    """Series; arrays of a few columns may also be sets of points, and of two columns contours."""
    kernels = [*_of("series"), Convolutions()] if shortest >= SHORT else []
    columns = {x.shape[1] if x.ndim == 2 else 1 for x in arrays}
    if columns <= set(FLAT):
        kernels += _of("points")
    if columns == {2} and shortest >= SHORT:
        kernels += _of("contours")
    return kernels or [DTW(), ERP()]


# Records


def columns_of(rows: list[Any]) -> dict[Hashable, list[Any]]:
    """The values of each field of records, None where it is missing."""
    if not isinstance(rows[0], Mapping):
        width = min(len(row) for row in rows)
        return {i: [row[i] for row in rows] for i in range(width)}
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def _for_fields(columns: Mapping[Hashable, list[Any]]) -> list[Kernel]:
    """Whole rows by Gower's distance, and one or more kernels for each field that has values."""
    kernels: list[Kernel] = []
    plain = all(_is_plain(v) for values in columns.values() for v in values[:LOOKED_AT])
    for name, values in columns.items():
        known = [value for value in values if not is_missing(value)]
        if known:
            kernels += [Field(name, kernel) for kernel in _of_field(name, known, plain)]
        else:
            warn(f"field {name!r} is missing in all {len(values)} rows: it is left out")
    if not kernels:
        raise ValueError('kernel="auto" finds no field with values; fill them in')
    return [*kernels, Gower()] if plain else kernels


def _of_field(name: Hashable, values: list[Any], plain: bool) -> list[Kernel]:
    """Kernels for one field; an error names it, and a warning unless Gower's distance gives it."""
    if date_order(values, None if plain else name) is not None:
        return [SklearnMetric("manhattan")]
    try:
        return _for_values(values)
    except ValueError as error:
        raise ValueError(f"field {name!r}: {error}") from error


def _for_values(values: list[Any]) -> list[Kernel]:
    """Kernels for the values of one field; texts that come again and again are categories."""
    if all(isinstance(value, Real) for value in values):
        return [SklearnMetric("manhattan")]
    if all(isinstance(value, str) for value in values):
        if len(set(values)) <= len(values) // 10:
            return [Gower()]
        return [*_of("texts")[:1], *_of("n-grams")[:1], *_by_places(values)[-1:]]
    return _for_objects(values)[:2]


def _is_plain(value: Any) -> bool:
    """Whether Gower's distance takes a value."""
    return isinstance(value, str | Real | date | np.datetime64) or is_missing(value)
