"""
Two penalties: what tuning finds, and what one penalty costs
============================================================

A Krein learner has a penalty for each part of the similarity. This map is the error on held-out
objects over both, on shapes compared by the modified Hausdorff distance. On the diagonal the
penalties are equal, which is a flipped spectrum; at the top the negative part is left out, which
is a clipped one.

The learner never sees this map. It follows the gradient of a cross-validated loss, here within
the training third, and keeps the penalties equal unless parting them pays.
"""

import matplotlib.pyplot as plt
import numpy as np

from kreinlearn import KreinRidgeClassifier
from kreinlearn.datasets import make_polygons
from kreinlearn.kernels import ModifiedHausdorff

X, y = make_polygons(300, random_state=1)
train, test = slice(100), slice(100, None)
D = ModifiedHausdorff()(X, X[train])  # penalties do not change it
common = {"kernel": "precomputed_dissimilarity", "similarity": "squared", "random_state": 0}
tuned = KreinRidgeClassifier(**common).fit(D[train], y[train])
equal = KreinRidgeClassifier(lambda_minus="equal", **common).fit(D[train], y[train])

# %%
grid = np.logspace(-7, 5, 13)
error = np.empty((len(grid), len(grid)))
for i, minus in enumerate(grid):
    for j, plus in enumerate(grid):
        model = KreinRidgeClassifier(lambda_plus=plus, lambda_minus=minus, **common)
        error[i, j] = 100 * (1 - model.fit(D[train], y[train]).score(D[test], y[test]))

# %%
fig, ax = plt.subplots(figsize=(6.4, 4.8), layout="constrained")
image = ax.contourf(grid, grid, error, levels=12, cmap="Greys")
fig.colorbar(image, label="test error, %")
ax.plot(grid, grid, "k:", linewidth=1)
for model, marker, name in ((tuned, "o", "tuned"), (equal, "s", "tuned, kept equal")):
    found = 100 * (1 - model.score(D[test], y[test]))
    ax.plot(
        model.lambda_plus_, model.lambda_minus_, marker, color="w", mec="k", ms=11,
        label=f"{name}: {found:.1f} %",
    )  # fmt: skip
ax.set(xscale="log", yscale="log", xlabel="lambda_plus", ylabel="lambda_minus")
ax.legend()
plt.show()
print(f"the smallest error on the map: {error.min():.1f} %")
