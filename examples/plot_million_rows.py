"""
A million rows from a file
==========================

Rows in a ``.npy``, Parquet or CSV file are read a tile at a time: the model is that of the
same rows in memory, and ``memory_budget`` says how much memory a fit may take. Next to it is
scikit-learn's ``Nystroem`` + ``RidgeCV`` with the same kernel, on rows with 100 MB of features.

With few landmarks more rows soon add nothing; rows and landmarks have to grow together.
(``KREINLEARN_EXAMPLE_ROWS`` is the number of rows.)
"""

import os
import tempfile
from pathlib import Path
from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline

from kreinlearn import KreinRidge, Resources


def truth(X):
    return np.sin(2 * X[:, 0]) * np.cos(X[:, 1]) + np.abs(X[:, 2])


n = int(os.environ.get("KREINLEARN_EXAMPLE_ROWS", 1_000_000))
rng = np.random.default_rng(0)
folder = tempfile.TemporaryDirectory()
path = Path(folder.name) / "rows.npy"
np.save(path, rng.normal(size=(n, 3)))
X = np.load(path, mmap_mode="r")
y, fresh = truth(X) + rng.normal(size=n), rng.normal(size=(5_000, 3))
sizes, budget = [n // 100, n // 10, n], Resources(memory_budget="200MB")

# %%
for m, marker in ((30, "o"), (150, "s")):
    errors = []
    for rows in sizes:
        model = KreinRidge(kernel_params={"width": 4.0}, landmarks=m, resources=budget)
        start = perf_counter()
        model.set_params(random_state=0).fit(path if rows == n else X[:rows], y[:rows])
        seconds = perf_counter() - start
        errors.append(np.sqrt(np.mean((model.predict(fresh) - truth(fresh)) ** 2)))
        print(f"{m:>4} landmarks, {rows:>9,} rows: {seconds:5.1f} s, error {errors[-1]:.3f}")
    plt.plot(sizes, errors, f"{marker}-", label=f"KreinRidge, {m} landmarks")
    most = int(min(n, 100e6 / 8 / m))
    theirs = make_pipeline(Nystroem(n_components=m, gamma=1 / 4, random_state=0), RidgeCV())
    found = theirs.fit(X[:most], y[:most]).predict(fresh)
    error = np.sqrt(np.mean((found - truth(fresh)) ** 2))
    plt.plot(most, error, f"k{marker}", mfc="w", label=f"Nystroem + RidgeCV, {m} landmarks")
plt.gca().set(xscale="log", xlabel="rows", ylabel="root mean square error", ylim=(0, None))
plt.legend(frameon=False)
plt.show()
folder.cleanup()
