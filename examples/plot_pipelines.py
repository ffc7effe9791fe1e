"""
Features: what can other estimators do with them?
=================================================

Here are polygons and the Hausdorff distance. ``KreinNystroem`` turns each polygon into a row of
numbers, and whatever scikit-learn has for rows of numbers can follow: a linear model, gradient
boosting, or a machine that has seen one class only and tells what is unlike it.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score, roc_curve
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM

from kreinlearn import KreinNystroem
from kreinlearn.datasets import make_polygons

X, y = make_polygons(300, random_state=0)
features = KreinNystroem("hausdorff", landmarks=40, rank=12, random_state=0)
learners = {
    "logistic regression": make_pipeline(features, StandardScaler(), LogisticRegression()),
    "gradient boosting": make_pipeline(features, GradientBoostingClassifier(random_state=0)),
}
errors = {name: 1 - cross_val_score(one, X, y, cv=5) for name, one in learners.items()}

# %%
# A one-class machine has seen half of one class, and is asked which objects are new to it; either
# class is the known one. The features are those of all polygons, without labels: landmarks from
# one class alone would say little of the other.

F = StandardScaler().fit_transform(features.fit_transform(X))
curves = {}
for c in np.unique(y):
    seen = np.flatnonzero(y == c)[::2]
    asked = np.setdiff1d(np.arange(len(y)), seen)
    score = -OneClassSVM(nu=0.1).fit(F[seen]).decision_function(F[asked])
    curves[c] = y[asked] != c, score

# %%
# Errors of five folds, with standard errors, and how well new objects are recognised: well if
# heptagons are the known class, and no better than by chance (0.5) if pentagons are.

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for place, error in enumerate(errors.values()):
    spread = 100 * error.std(ddof=1) / np.sqrt(5)
    left.errorbar(100 * error.mean(), place, xerr=spread, fmt="o", color="0.2", capsize=3)
left.set_yticks(range(len(errors)), list(errors))
left.set(xlabel="error, %", xlim=(0, None), ylim=(-0.6, len(errors) - 0.4))
for (c, (is_new, score)), style in zip(curves.items(), ("-", "--"), strict=True):
    area = roc_auc_score(is_new, score)
    right.plot(*roc_curve(is_new, score)[:2], style, label=f"known: class {c}, area {area:.2f}")
right.set(xlabel="known objects called new", ylabel="new objects called new", title="OneClassSVM")
right.legend(frameon=False)
plt.show()
