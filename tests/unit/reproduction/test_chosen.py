"""What a fitted model chose, in one line that benchmarks take apart."""

from __future__ import annotations

import numpy as np

from kreinlearn import KreinClassifier
from reproduction.classifying import chosen


def test_every_choice_is_one_word() -> None:
    x = np.random.default_rng(0).normal(size=(60, 2))
    D = np.abs(x[:, None] - x).sum(axis=2)
    model = KreinClassifier("precomputed_dissimilarity", random_state=0).fit(D, x[:, 0] > 0)
    words = dict(word.split("=", 1) for word in chosen(model).split())
    assert words["similarity"] == model.similarity_.replace(" ", "")
    assert float(words["lambda_plus"]) > 0
