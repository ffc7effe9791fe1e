"""
Which examples speak for a prediction?
======================================

The decision about an object is a sum over landmarks, so it can be explained by examples: which of
the training objects speak for it, which against it, and how strongly.
``ExplanationDisplay`` draws them, each over the object in question.
"""

import matplotlib.pyplot as plt
import numpy as np

from kreinlearn import KreinClassifier, KreinRidge, KreinRidgeClassifier
from kreinlearn.datasets import make_noisy_strings, make_polygons, make_warped_series
from kreinlearn.plotting import ExplanationDisplay

# %%
# A time series: landmarks of its own class run in parallel to it, up to a warping.

X, y = make_warped_series(80, random_state=0)
model = KreinRidgeClassifier("dtw", random_state=0).fit(X[:70], y[:70])
ExplanationDisplay.from_estimator(model, X[70], n=2)
plt.show()

# %%
# A contour, by the distance of shapes. All are drawn at one size, and none is rotated.

X, y = make_polygons(80, random_state=0)
model = KreinRidgeClassifier("procrustes", random_state=0).fit(X[:70], y[:70])
ExplanationDisplay.from_estimator(model, X[70], n=2)
plt.show()

# %%
# A text is written beside its bar. The parts that are no landmarks are named below the bars.

X, y = make_noisy_strings(120, random_state=0)
model = KreinClassifier("levenshtein", random_state=0).fit(X[:100], y[:100], conformal="split")
ExplanationDisplay.from_estimator(model, X[100], n=3)
plt.show()

# %%
# The same as text, beside the set of classes that covers the truth in 95 % of such cases, and the
# p-value of an object that is like nothing before.

print(model.explain(X[100:101], n=3))
print("classes:", model.classes_[model.predict_set(X[100:101], coverage=0.95)[0]])
print("novelty:", model.novelty([X[100], "something else entirely"]))

# %%
# Of a vector the values are drawn, those of the object as bars.

rng = np.random.default_rng(0)
X = rng.normal(size=(120, 4))
model = KreinRidge("gaussian", random_state=0).fit(X[:100], np.sin(X[:100, 0]) + X[:100, 1])
ExplanationDisplay.from_estimator(model, X[100], n=2)
plt.show()
