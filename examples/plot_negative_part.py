"""
What is in the negative part?
=============================

A common repair of an indefinite similarity drops its negative eigenvalues ("clip") or turns them
round ("flip"). Balls of two sizes in a cube, measured by the gaps between their surfaces, have
0.07 % of their spectrum below zero: it looks like nothing, and yet a tenth of the balls is
misjudged without it.

A huge ``lambda_minus`` leaves the negative part out, an equal one flips it, and by default the
labels decide. The pictures show balls that were left out of the fit.
"""

import matplotlib.pyplot as plt
from sklearn.model_selection import cross_val_predict

from kreinlearn import KreinPCA, KreinRidgeClassifier, indefiniteness
from kreinlearn.datasets import make_balls3d

D, y = make_balls3d((60, 60), random_state=0)
share = indefiniteness(D, kernel="precomputed_dissimilarity")
pca = KreinPCA(100, kernel="precomputed_dissimilarity", landmarks=None).fit(D)
positive, negative = (int((pca.signature_ == s).sum()) for s in (1, -1))
print(f"{100 * share:.2f} % of the spectrum is negative: of 100 axes {positive} are positive")

# %%
fig, panels = plt.subplots(1, 3, figsize=(10, 3.6), sharey=True, layout="constrained")
penalties = {"negative part left out": 1e9, "flipped": "equal", "by the labels": "auto"}
for ax, (name, lambda_minus) in zip(panels, penalties.items(), strict=True):
    model = KreinRidgeClassifier(
        "precomputed_dissimilarity", similarity="squared", lambda_minus=lambda_minus
    )
    found = cross_val_predict(model, D, y, cv=5, method="decision_function")
    error = 100 * ((found > 0) != y).mean()
    print(f"{name:<24}{error:5.1f} % of balls left out are misjudged")
    ax.hist([found[y == 0], found[y == 1]], 20, color=["0.75", "0.2"], label=["small", "large"])
    ax.axvline(0, color="0.4", linewidth=0.8)
    ax.set(title=f"{name}: {error:.1f} %", xlabel="decision")
panels[0].set_ylabel("balls")
panels[0].legend(frameon=False)
plt.show()
