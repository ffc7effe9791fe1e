"""
What is my similarity like?
===========================

``inspect`` looks at a similarity before anything is learnt: is it symmetric, deterministic,
positive definite, how much of its spectrum is negative, do labels show in that part, how many
landmarks will do. It begins with advice in words. Here it looks at three ways to compare the same
150 strings.

Jaro's distance has somewhat more of its spectrum below zero than Levenshtein's, and the score of
Needleman and Wunsch far less. That alone says nothing for or against them: the row "label signal in
the negative part" says whether labels are found there.
"""

import matplotlib.pyplot as plt
import numpy as np

from kreinlearn import inspect
from kreinlearn.datasets import make_noisy_strings

X, y = make_noisy_strings(150, n_classes=3, noise=8, random_state=0)
names = ["levenshtein", "jaro", "needleman_wunsch"]
found = {name: inspect(X, name, y=y, random_state=0) for name in names}
print(found["levenshtein"])

# %%
rows = [dict(each.rows()) for each in found.values()]
for what in ("kind", "signature", "effective rank", "label signal in the negative part"):
    print(what)
    for name, row in zip(names, rows, strict=True):
        print(f"    {name:<18}{row[what]}")

# %%
# Eigenvalues over the largest, by size: what is below zero is no rounding error.

fig, panels = plt.subplots(1, 3, figsize=(9, 3.2), sharey=True, layout="constrained")
for ax, (name, each) in zip(panels, found.items(), strict=True):
    D = np.sort(each.eigenvalues)[::-1] / np.abs(each.eigenvalues).max()
    ax.bar(np.arange(len(D)), D, width=1, color=np.where(D > 0, "0.65", "0.1"))
    ax.axhline(0, color="0.3", linewidth=0.8)
    ax.set_yscale("symlog", linthresh=1e-3)
    iota = 100 * each.indefiniteness[each.n_sampled]
    ax.set(title=f"{name}\n{iota:.1f} % negative", xlabel="eigenvalue, sorted")
panels[0].set_ylabel("over the largest")
plt.show()
