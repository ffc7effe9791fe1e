"""Estimators of scikit-learn: parameters, documentation and fitted attributes."""

ESTIMATORS = {  # the modules of all estimators, by the names of their classes
    "KreinClassifier": "front",
    "KreinKMeans": "kmeans",
    "KreinNystroem": "transformer",
    "KreinPCA": "transformer",
    "KreinRegressor": "front",
    "KreinRidge": "ridge",
    "KreinRidgeClassifier": "ridge",
    "KreinSVC": "svm",
    "KreinVCRidge": "variance",
    "KreinVCRidgeClassifier": "variance",
    "SimilarityRidge": "baselines",
    "SimilarityRidgeClassifier": "baselines",
    "SpectrumSVC": "spectrum_svc",
}
