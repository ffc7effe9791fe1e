"""
A spreadsheet of distances
==========================

A table of dissimilarities comes out of a spreadsheet: names in the first row and column, numbers
rounded by hand, one half filled in by somebody else. Here it is made of 60 strings of three
classes, with a disagreement of up to one unit between the halves.

Three steps: read it, look at it (``inspect``), learn from it. ``inspect`` says how large the gap
between the halves is. Their mean is taken by hand here; an estimator would do the same, with a
warning.
"""

import csv
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import cross_val_score

from kreinlearn import KreinPCA, KreinRidgeClassifier, inspect
from kreinlearn.datasets import make_noisy_strings
from kreinlearn.kernels import Levenshtein

strings, y = make_noisy_strings(60, n_classes=3, noise=8, random_state=0)
D = Levenshtein()(strings)
D += np.tril(np.random.default_rng(0).integers(0, 2, D.shape), -1)  # the other person's half
folder = tempfile.TemporaryDirectory()
path = Path(folder.name) / "distances.csv"
with path.open("w", newline="", encoding="utf-8") as file:
    csv.writer(file).writerows(
        [["", *strings], *([s, *d] for s, d in zip(strings, D.tolist(), strict=True))]
    )

# %%
with path.open(newline="", encoding="utf-8") as file:
    header, *lines = csv.reader(file)
assert [line[0] for line in lines] == header[1:]  # the same order in rows and columns
D = np.array([line[1:] for line in lines], dtype=float)
folder.cleanup()
print(inspect(D, "precomputed_dissimilarity", y=y, random_state=0))

# %%
D = (D + D.T) / 2
pca = KreinPCA(2, kernel="precomputed_dissimilarity", landmarks=None)
places = pca.fit_transform(D)
model = KreinRidgeClassifier("precomputed_dissimilarity", random_state=0)
print(f"error in five folds: {100 * (1 - cross_val_score(model, D, y, cv=5).mean()):.1f} %")

fig, ax = plt.subplots(figsize=(6, 4.4), layout="constrained")
for c, marker in enumerate("o^s"):
    ax.scatter(*places[y == c].T, marker=marker, label=f"class {c}", edgecolor="0.2")
signs = ["+" if s > 0 else "−" for s in pca.signature_]
ax.set(xlabel=f"axis 1 ({signs[0]})", ylabel=f"axis 2 ({signs[1]})")
ax.legend(frameon=False)
plt.show()
