"""The learners that are compared, each with its default parameters, by the name that is shown."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from difflib import get_close_matches
from itertools import chain
from typing import Any, NamedTuple, Protocol

from sklearn.base import clone
from sklearn.dummy import DummyClassifier, DummyRegressor

from kreinlearn.data.memory import Resources
from kreinlearn.estimators.access import kernel_for
from kreinlearn.estimators.baselines import SimilarityRidge, SimilarityRidgeClassifier
from kreinlearn.estimators.front import FrontDoor, KreinClassifier, KreinRegressor
from kreinlearn.estimators.ridge import KreinRidge, KreinRidgeClassifier
from kreinlearn.estimators.spectrum_svc import SpectrumSVC
from kreinlearn.estimators.svm import KreinSVC
from kreinlearn.estimators.variance import KreinVCRidge, KreinVCRidgeClassifier
from kreinlearn.evaluation.neighbours import NearestNeighbours
from kreinlearn.evaluation.verdict import BASELINE, KREIN, TRIVIAL
from kreinlearn.inspection.arguments import Array, KernelLike, KernelParams, Objects
from kreinlearn.kernels.fields import columns
from kreinlearn.kernels.several import Several
from kreinlearn.kernels.tables import Gower
from kreinlearn.nystrom.landmarks import Landmarks

NEIGHBOURS = "k nearest neighbours"


class Estimator(Protocol):
    """What a learner of scikit-learn offers."""

    def fit(self, X: Objects, y: Array) -> object: ...
    def predict(self, X: Objects) -> Array: ...


class Settings(NamedTuple):
    """What every learner is given."""

    kernel: KernelLike | list[Any]
    kernel_params: KernelParams
    landmarks: Landmarks | float | str | None
    n_jobs: int | None
    resources: Resources | None

    def parameters(self, *omitted: str, seed: int | None = None) -> dict[str, Any]:
        """Keyword arguments of an estimator, without those that it does not have.

        This is the only place of ``evaluation`` that knows the names of parameters.
        """
        given = {**self._asdict(), "random_state": seed}
        return {name: value for name, value in given.items() if name not in omitted}


def one_for_all(kernels: list[Any]) -> Any:
    """Of the kernels that "auto" compares, what learners get that take one kernel.

    It is the Gaussian kernel of vectors, Gower's distance of records, or else the first kernel.
    """
    if kernels[0].domain.is_vectors:
        return "gaussian"
    whole = [one for one in kernels if isinstance(one, Gower)]
    return whole[0] if whole else kernels[0]


def one_or_several(kernel: KernelLike | list[Any], params: KernelParams, X: Objects) -> Any:
    """One kernel, or the list of those of which a sum is learned; "auto" depends on X."""
    if isinstance(kernel, dict):
        kernel = columns(kernel)
    if not isinstance(kernel, list) and not (isinstance(kernel, str) and kernel == "auto"):
        return kernel
    given = None if params is None else dict(params)
    found = kernel_for(KreinClassifier(kernel, kernel_params=given), X)
    return list(found.kernels) if isinstance(found, Several) else found


class Learner(NamedTuple):
    """A learner by its name and kind; ``make`` gives an unfitted one, from a seed."""

    name: str
    kind: str
    make: Callable[[Settings, int], Estimator]
    one_kernel: bool = False  # whether a list of kernels is too much

    def given(self, kernel: Any) -> Learner:
        """The same learner with this kernel, whatever the others are given."""
        return self._replace(
            make=lambda settings, seed: self.make(settings._replace(kernel=kernel), seed)
        )


def _ours(kind: str, cls: type, *omitted: str, name: str = "", **more: Any) -> Learner:
    """A learner of this library, which is given all settings but those that it does not have."""

    def make(given: Settings, seed: int) -> Estimator:
        estimator: Estimator = cls(**given.parameters(*omitted, seed=seed), **more)
        return estimator

    return Learner(name or cls.__name__, kind, make, not issubclass(cls, FrontDoor))


def _on_spectrum(spectrum: str) -> Learner:
    name = f"SpectrumSVC {spectrum}"
    return _ours(BASELINE, SpectrumSVC, "landmarks", name=name, spectrum=spectrum)


def _neighbours(classifies: bool) -> Learner:
    return _ours(BASELINE, NearestNeighbours, "landmarks", name=NEIGHBOURS, classifies=classifies)


KNOWN = {  # the estimator to try first comes first
    "classification": [
        _ours(KREIN, KreinClassifier),
        _ours(KREIN, KreinRidgeClassifier),
        _ours(KREIN, KreinVCRidgeClassifier),
        _ours(KREIN, KreinSVC),
        _ours(BASELINE, SimilarityRidgeClassifier),
        _on_spectrum("flip"),
        _on_spectrum("clip"),
        _neighbours(True),
        Learner("always the most frequent class", TRIVIAL, lambda given, seed: DummyClassifier()),
    ],
    "regression": [
        _ours(KREIN, KreinRegressor),
        _ours(KREIN, KreinRidge),
        _ours(KREIN, KreinVCRidge),
        _ours(BASELINE, SimilarityRidge),
        _neighbours(False),
        Learner("always the mean", TRIVIAL, lambda given, seed: DummyRegressor()),
    ],
}
WORDS: dict[str, tuple[str, ...]] = {  # short names, as those of the command line
    "krein": ("KreinClassifier", "KreinRegressor"),
    "ridge": ("KreinRidgeClassifier", "KreinRidge"),
    "vc-ridge": ("KreinVCRidgeClassifier", "KreinVCRidge"),
    "svc": ("KreinSVC",),
    "similarity-ridge": ("SimilarityRidgeClassifier", "SimilarityRidge"),
    "spectrum-svc": ("SpectrumSVC flip", "SpectrumSVC clip"),
    "neighbours": (NEIGHBOURS,),
    "constant": ("always the most frequent class", "always the mean"),
}
Wanted = str | tuple[str, Estimator]  # a known name, or a name and an estimator of the user


def learners_for(task: str, wanted: str | Iterable[Wanted]) -> list[Learner]:
    """The learners to compare."""
    known = {learner.name: learner for learner in KNOWN[task]}
    if wanted == "auto":
        return list(known.values())
    items = [wanted] if isinstance(wanted, str) else list(wanted)
    if not items:
        raise ValueError('learners is empty; pass "auto", or names of learners')
    meant = chain.from_iterable(_meant(item, known) for item in items)
    return [_learner(item, known, task) for item in meant]


def _meant(item: Wanted, known: Collection[str]) -> list[Wanted]:
    """The learners of a short name, or the item itself."""
    names = WORDS.get(item, ()) if isinstance(item, str) else ()
    return [name for name in names if name in known] or [item]


def _learner(item: Wanted, known: dict[str, Learner], task: str) -> Learner:
    if isinstance(item, tuple) and len(item) == 2 and hasattr(item[1], "fit"):
        return Learner(str(item[0]), BASELINE, lambda given, seed: clone(item[1]))
    if not isinstance(item, str):
        raise TypeError(f"a learner is a name or a pair (name, estimator), got {item!r}")
    if item not in known:
        short = [word for word, names in WORDS.items() if not known.keys().isdisjoint(names)]
        same = {name.lower(): name for name in [*short, *known]}
        close = get_close_matches(item.lower(), same, n=1)
        did = f" (did you mean {same[close[0]]!r}?)" if close else ""
        raise ValueError(
            f"learner {item!r} is not known for {task}{did}; known are {list(known)}, or in short "
            f"{short}, and a pair (name, estimator) adds one of your own"
        )
    return known[item]
