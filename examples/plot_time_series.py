"""
Time series: when does warping pay?
===================================

Series of three classes are stretched and shifted in time. A Gaussian kernel compares them step by
step, ``"dtw"`` and ``"msm"`` look for the best alignment first; neither alignment gives a
positive definite kernel, and neither has to.

Without warping the plain comparison errs least. With warping ``"msm"`` is ahead of it, and
``"dtw"`` no more than catches up.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.neighbors import KNeighborsClassifier

from kreinlearn import KreinRidgeClassifier
from kreinlearn.datasets import make_warped_series
from kreinlearn.kernels import DTW

half = 60
warps = [0.0, 0.15, 0.3]
learners = {
    "Gaussian kernel": KreinRidgeClassifier("gaussian", random_state=0),
    "DTW": KreinRidgeClassifier("dtw", kernel_params={"window": 0.2}, random_state=0),
    "MSM": KreinRidgeClassifier("msm", kernel_params={"window": 0.2}, random_state=0),
}
errors = {"1-NN on DTW": [], **{name: [] for name in learners}}

for warp in warps:
    X, y = make_warped_series(
        2 * half, n_classes=3, length=40, warp=warp, noise=1.2, random_state=3
    )
    X = np.array(X)  # of equal lengths; ragged ones stay a list
    train, test = slice(half), slice(half, None)
    nearest = KNeighborsClassifier(1, metric="precomputed")
    D = DTW(window=0.2)(X, X[train])
    errors["1-NN on DTW"].append(1 - nearest.fit(D[train], y[train]).score(D[test], y[test]))
    for name, model in learners.items():
        errors[name].append(1 - model.fit(X[train], y[train]).score(X[test], y[test]))

# %%
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
for x in [x for x, c in zip(X, y, strict=True) if c == 0][:4]:
    left.plot(x, color="0.3", linewidth=1)
left.set(title=f"four series of one class, warp {warp}", xlabel="time", ylabel="value")
for (name, line), style in zip(errors.items(), ("s:", "D--", "o-", "^-"), strict=True):
    right.plot(warps, 100 * np.array(line), style, label=name)
right.set(xticks=warps, xlabel="warp of time", ylabel="test error, %", ylim=(0, None))
right.legend(frameon=False)
plt.show()
