"""
Shapes: which distance between outlines?
========================================

Pentagons and heptagons with random corners, compared by five distances. The set distances
(``hausdorff``, ``modified_hausdorff``, ``earth_mover``) see corners as points, the contour
distances (``procrustes``, ``turning``) see the outline and forget how it is turned. The earth
mover's distance errs least for a simple reason: it gives every corner the weight of a fifth or a
seventh, and so it counts the corners.

The bar beside each error is the share of the spectrum that is negative: how far the distance is
from a positive definite kernel. It says nothing of which distance is the right one.
Cross-validation does.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier

from kreinlearn import KreinRidgeClassifier, indefiniteness
from kreinlearn.datasets import make_polygons
from kreinlearn.kernels import resolve

X, y = make_polygons(60, random_state=0)
names = ["hausdorff", "modified_hausdorff", "earth_mover", "procrustes", "turning"]
error, nearest, iota = [], [], []
for name in names:
    model = KreinRidgeClassifier(name, random_state=0)
    error.append(100 * (1 - cross_val_score(model, X, y, cv=3).mean()))
    D = resolve(name)(X)
    neighbour = KNeighborsClassifier(1, metric="precomputed")
    nearest.append(100 * (1 - cross_val_score(neighbour, D, y, cv=3).mean()))
    iota.append(100 * indefiniteness(X, kernel=name))

# %%
fig, (top, bars) = plt.subplots(
    2, 1, figsize=(8, 6.2), height_ratios=(1, 2.2), layout="constrained"
)
for i, x in enumerate(X[:10]):
    top.fill(x[:, 0] + 2.4 * i, x[:, 1], facecolor="0.9" if y[i] == 5 else "0.6", edgecolor="0.2")
top.set_aspect("equal")
top.set_axis_off()
top.set_title("pentagons light, heptagons dark")
at = np.arange(len(names))
bars.bar(at - 0.27, error, 0.25, color="0.2", label="KreinRidgeClassifier, error")
bars.bar(at, nearest, 0.25, color="0.6", label="1-NN, error")
bars.bar(at + 0.27, iota, 0.25, color="w", edgecolor="0.2", hatch="//", label="negative spectrum")
bars.set_xticks(at, names)
bars.set_ylabel("%, three folds")
bars.legend(frameon=False)
plt.show()
