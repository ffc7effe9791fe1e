"""
Strings: is a learner worth it if nearest neighbours know the distance?
=======================================================================

An edit distance and the nearest neighbour are the usual first try on labelled strings. Here 200
strings of four classes are mutated more and more, half of them are labelled, and nearest
neighbours get the same Levenshtein distances as the learners.

Nearest neighbours look at one to nine labels, and a learner at all of them. That difference counts
where strings keep little of their class. Where they keep enough, tuned neighbours err as seldom or
less often, and are cheaper. With 100 test strings, differences of a few points may be chance.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier

from kreinlearn import KreinRidgeClassifier, SpectrumSVC
from kreinlearn.datasets import make_noisy_strings
from kreinlearn.kernels import Levenshtein

half = 100
edits = [6, 9, 12]
neighbours = {"n_neighbors": [1, 3, 5, 7, 9]}
on_distances = {
    "1-NN": KNeighborsClassifier(1, metric="precomputed"),
    "k-NN, k by cross-validation": GridSearchCV(
        KNeighborsClassifier(metric="precomputed"), neighbours
    ),
}
on_strings = {
    "SpectrumSVC, flip": SpectrumSVC("levenshtein", random_state=0),
    "KreinRidgeClassifier": KreinRidgeClassifier("levenshtein", random_state=0),
}
errors = {name: [] for name in (*on_distances, *on_strings)}

# %%
# Learners take the list of strings itself; only the neighbours need a matrix.

for noise in edits:
    X, y = make_noisy_strings(2 * half, n_classes=4, length=15, noise=noise, random_state=0)
    train, test = slice(half), slice(half, None)
    D = Levenshtein()(X, X[train])
    for name, model in on_distances.items():
        errors[name].append(np.mean(model.fit(D[train], y[train]).predict(D[test]) != y[test]))
    for name, model in on_strings.items():
        errors[name].append(np.mean(model.fit(X[train], y[train]).predict(X[test]) != y[test]))

# %%
fig, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
for (name, line), marker in zip(errors.items(), "sDvo", strict=True):
    style = "--" if name in on_distances else "-"
    ax.plot(edits, 100 * np.array(line), style, marker=marker, label=name)
ax.set(xticks=edits, xlabel="random edits of a string of 15 letters", ylabel="test error, %")
ax.legend(frameon=False)
plt.show()
