"""Learning from any symmetric similarity or dissimilarity, positive definite or not."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kreinlearn.data.blocks import Blocks
    from kreinlearn.data.memory import Resources
    from kreinlearn.data.opening import table
    from kreinlearn.estimators.baselines import SimilarityRidge, SimilarityRidgeClassifier
    from kreinlearn.estimators.front import KreinClassifier, KreinRegressor
    from kreinlearn.estimators.kmeans import KreinKMeans
    from kreinlearn.estimators.predicting import predict_to
    from kreinlearn.estimators.ridge import KreinRidge, KreinRidgeClassifier
    from kreinlearn.estimators.spectrum_svc import SpectrumSVC
    from kreinlearn.estimators.svm import KreinSVC
    from kreinlearn.estimators.transformer import KreinNystroem, KreinPCA
    from kreinlearn.estimators.variance import KreinVCRidge, KreinVCRidgeClassifier
    from kreinlearn.evaluation import Evaluation, evaluate
    from kreinlearn.inspection import Inspection, indefiniteness, inspect
    from kreinlearn.kernels import (
        columns,
        dissimilarity,
        normalized,
        pairwise,
        register,
        similarity_of,
    )
    from kreinlearn.nystrom.landmarks import Landmarks
    from kreinlearn.persist import ModelFormatError, load, save

__version__ = "0.1.0.dev0"

__all__ = [
    "Blocks",
    "Evaluation",
    "Inspection",
    "KreinClassifier",
    "KreinKMeans",
    "KreinNystroem",
    "KreinPCA",
    "KreinRegressor",
    "KreinRidge",
    "KreinRidgeClassifier",
    "KreinSVC",
    "KreinVCRidge",
    "KreinVCRidgeClassifier",
    "Landmarks",
    "ModelFormatError",
    "Resources",
    "SimilarityRidge",
    "SimilarityRidgeClassifier",
    "SpectrumSVC",
    "columns",
    "dissimilarity",
    "evaluate",
    "indefiniteness",
    "inspect",
    "load",
    "normalized",
    "pairwise",
    "predict_to",
    "register",
    "save",
    "similarity_of",
    "table",
]

# Where the public names are; imported when they are first asked for, so that a command that
# needs none of them starts at once.
_PLACES = {
    "data.memory": ("Resources",),
    "estimators.baselines": ("SimilarityRidge", "SimilarityRidgeClassifier"),
    "estimators.front": ("KreinClassifier", "KreinRegressor"),
    "estimators.kmeans": ("KreinKMeans",),
    "estimators.ridge": ("KreinRidge", "KreinRidgeClassifier"),
    "estimators.spectrum_svc": ("SpectrumSVC",),
    "estimators.svm": ("KreinSVC",),
    "estimators.transformer": ("KreinNystroem", "KreinPCA"),
    "estimators.variance": ("KreinVCRidge", "KreinVCRidgeClassifier"),
    "evaluation": ("Evaluation", "evaluate"),
    "inspection": ("Inspection", "indefiniteness", "inspect"),
    "kernels": (
        "columns",
        "dissimilarity",
        "normalized",
        "pairwise",
        "register",
        "similarity_of",
    ),
    "nystrom.landmarks": ("Landmarks",),
    "persist": ("ModelFormatError", "load", "save"),
    "estimators.predicting": ("predict_to",),
    "data.blocks": ("Blocks",),
    "data.opening": ("table",),
}
_PLACE_OF = {name: place for place, names in _PLACES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _PLACE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_PLACE_OF[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
