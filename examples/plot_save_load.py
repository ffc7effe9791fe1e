"""
Keep a model: how large is the file, and what is in it?
=======================================================

A model file is a line of JSON and plain arrays. It holds no code, loads in no time, and
holds the landmarks, which are training objects: all 400 strings of the exact model here. What
fewer landmarks cost in error is measured beside it.

A model of private objects is private.
"""

import json
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from kreinlearn import KreinRidgeClassifier, load, save
from kreinlearn.datasets import make_noisy_strings

X, y = make_noisy_strings(700, n_classes=4, noise=9, random_state=0)
temporary = tempfile.TemporaryDirectory()
folder = Path(temporary.name)
counts = [15, 30, 60, 120, None]
sizes, errors, shown = [], [], []
for m in counts:
    model = KreinRidgeClassifier("levenshtein", similarity="exp", landmarks=m, random_state=0)
    model.fit(X[:400], y[:400])
    path = folder / f"{model.n_landmarks_}.krein"
    save(model, path)
    again = load(path)
    assert np.array_equal(again.predict(X[400:]), model.predict(X[400:]))
    sizes.append(path.stat().st_size / 1024)
    errors.append(100 * (1 - again.score(X[400:], y[400:])))
    shown.append(model.n_landmarks_)

# %%
first, digest, content = (folder / "60.krein").read_bytes().split(b"\n")[:3]
print(first.decode(), digest.decode(), sep="\n")
for name, value in json.loads(content)["parameters"].items():
    print(f"{name:>16}: {value}")
print("a landmark in it:", load(folder / "60.krein").landmarks_[0])
temporary.cleanup()

# %%
fig, ax = plt.subplots(figsize=(6.6, 3.8), layout="constrained")
ax.plot(shown, errors, "ko-")
ax.set(xscale="log", xlabel="landmarks", ylabel="test error, %", ylim=(0, None))
ax.set_xticks(shown, [str(m) for m in shown])
ax.minorticks_off()
beside = ax.twinx()
beside.plot(shown, sizes, "s--", color="0.5")
beside.set_ylabel("size of the file, kB (dashed)")
beside.set_ylim(0, None)
plt.show()
