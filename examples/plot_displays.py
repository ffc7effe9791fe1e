"""
Look at a model: spectrum, rank, penalties, landmarks
=====================================================

Four questions about 150 polygons under the Hausdorff distance, with a display for each. How much
of the similarity is negative? What rank is worth its price? Was the choice of penalties a close
one? Which objects were chosen as landmarks?
"""

import matplotlib.pyplot as plt

from kreinlearn import KreinNystroem, KreinRidgeClassifier
from kreinlearn.datasets import make_polygons
from kreinlearn.plotting import (
    LandmarkDisplay,
    PenaltyDisplay,
    RankErrorDisplay,
    SpectrumDisplay,
)

X, y = make_polygons(150, random_state=0)
features = KreinNystroem("hausdorff", landmarks=75, random_state=0).fit(X)
model = KreinRidgeClassifier("hausdorff", similarity="squared", landmarks=50, random_state=0)
model.fit(X, y)

# %%
# The spectrum of the approximation, and its error against the smallest possible at each rank: 75
# landmarks of 150 objects come close to it for small ranks and cannot for large ones.

fig, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4), layout="constrained")
SpectrumDisplay.from_estimator(features, ax=left)
RankErrorDisplay.from_estimator(features, X, random_state=0, ax=right)
plt.show()

# %%
# The loss that tuning has minimised, and the landmarks: they cover the sample.

fig, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4.2), layout="constrained")
PenaltyDisplay.from_estimator(model, X, y, grid=15, ax=left)
LandmarkDisplay.from_estimator(features, X, ax=right)
plt.show()
print(f"lambda_plus {model.lambda_plus_:.2g}, lambda_minus {model.lambda_minus_:.2g}")
