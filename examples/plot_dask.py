"""
Dask: the same model, wherever the rows are
===========================================

A Dask array may have its chunks on other machines. The least-squares learners send the landmarks
there and bring sums of the size landmarks x landmarks back; rows stay where they are. This shows
that the model does not depend on how rows are cut, and what it costs if chunks are too small.

The threads of this process stand for a cluster here; with one, make a ``distributed.Client``
first and change nothing else.
"""

from time import perf_counter

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np

from kreinlearn import KreinRidge

n = 40_000
X = np.random.default_rng(0).normal(size=(n, 4))
y = np.sin(X[:, 0]) * X[:, 1]
model = KreinRidge("delta_gauss", landmarks=100, random_state=0)
for rows in (X, da.from_array(X, chunks=(20_000, 4))):
    model.fit(rows, y)  # first fits load and compile what they need, which is not measured
start = perf_counter()
local = model.fit(X, y).dual_coef_
seconds = [perf_counter() - start]

# %%
chunks = [1_000, 4_000, 20_000]
print(f"{'chunk':>7} {'difference of coefficients':>27}")
for size in chunks:
    X_d, y_d = da.from_array(X, chunks=(size, 4)), da.from_array(y, chunks=size)
    start = perf_counter()
    model.fit(X_d, y_d)
    seconds.append(perf_counter() - start)
    gap = np.abs(model.dual_coef_ - local).max() / np.abs(local).max()
    print(f"{size:>7,} {gap:>27.1e}")

# %%
# Predictions of a Dask array are lazy, chunk by chunk, until they are asked for.

predicted = model.predict(X_d)
print(type(predicted).__module__, predicted.chunks, f"R² {model.score(X_d, y_d):.4f}")

fig, ax = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
names = ["array in memory", *(f"chunks of {size:,} rows" for size in chunks)]
ax.barh(names, seconds, color=["0.2", "0.6", "0.6", "0.6"])
ax.invert_yaxis()
ax.set_xlabel("seconds of a fit")
plt.show()
