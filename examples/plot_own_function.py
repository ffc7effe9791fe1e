"""
Your own function: a search that remembers its pairs
====================================================

``pairwise(f)`` makes a kernel of any function of two objects, ``dissimilarity(...)`` says that
small means alike. Parameters of the function are searched as ``kernel__name``. Such a function is
slow, and folds ask for the same pairs again and again. Inside ``remembering()`` each is evaluated
once, apart from a few that every fit evaluates again to see whether the function is symmetric and
gives the same value twice.
"""

from collections import Counter
from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import GridSearchCV

from kreinlearn import KreinRidgeClassifier, dissimilarity, pairwise
from kreinlearn.datasets import make_noisy_strings
from kreinlearn.kernels import remembering

calls = Counter()


def apart(a, b, k=1):  # words of k letters that one string has and the other has not
    calls["f"] += 1
    one, two = (Counter(x[i : i + k] for i in range(len(x) - k + 1)) for x in (a, b))
    return float(((one - two) + (two - one)).total())


X, y = make_noisy_strings(50, noise=10, random_state=1)
model = KreinRidgeClassifier(dissimilarity(pairwise(apart)), similarity="squared", random_state=0)
grid = {"kernel__k": [1, 2, 3, 4]}
search = GridSearchCV(model, grid, cv=3)

# %%
figures = {}
for name in ("plain", "remembering"):
    calls.clear()
    start = perf_counter()
    if name == "remembering":
        with remembering():
            search.fit(X, y)
    else:
        search.fit(X, y)
    figures[name] = calls["f"], perf_counter() - start, search.best_params_, search.best_score_
    print(f"{name:<12} {figures[name][0]:>9,} evaluations, {figures[name][1]:5.1f} s")
print(figures["plain"][2:] == figures["remembering"][2:], "- the same result:", search.best_params_)

# %%
fig, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
table = search.cv_results_
error, spread = 1 - table["mean_test_score"], table["std_test_score"] / np.sqrt(3)  # of three folds
ax.errorbar(grid["kernel__k"], 100 * error, 100 * spread, fmt="ko-", capsize=3)
ax.set(xticks=grid["kernel__k"], xlabel="letters in a word, k", ylabel="error in three folds, %")
plt.show()
