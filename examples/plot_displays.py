"""
Look at a model: spectrum, penalties, axes
==========================================

Three questions about 150 polygons under the Hausdorff distance, with a display for each. How much
of the similarity is negative? Was the choice of penalties a close one? Where do the classes lie?
"""

import matplotlib.pyplot as plt

from kreinlearn import KreinNystroem, KreinRidgeClassifier
from kreinlearn.datasets import make_polygons
from kreinlearn.plotting import EmbeddingDisplay, PenaltyDisplay, SpectrumDisplay

X, y = make_polygons(150, random_state=0)
features = KreinNystroem("hausdorff", landmarks=75, random_state=0).fit(X)
model = KreinRidgeClassifier("hausdorff", similarity="squared", landmarks=50, random_state=0)
model.fit(X, y)

# %%
# The spectrum of the approximation, and the classes on its two largest axes.

fig, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4), layout="constrained")
SpectrumDisplay.from_estimator(features, ax=left)
EmbeddingDisplay.from_estimator(features, X, y, ax=right)
plt.show()

# %%
# The loss that tuning has minimised.

PenaltyDisplay.from_estimator(model, X, y, grid=15)
plt.show()
print(f"lambda_plus {model.lambda_plus_:.2g}, lambda_minus {model.lambda_minus_:.2g}")
