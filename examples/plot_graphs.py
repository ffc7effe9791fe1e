"""
Graphs: how many labelled ones does it take?
============================================

Trees against rings with chords, of the same sizes and the same node labels: only the edges tell
them apart. Three similarities of graphs see different things: counts of refined labels
(``weisfeiler_lehman``), distances of such counts (``wl_distance``) and lengths of shortest paths
(``shortest_path``).

Graphs are ``(node labels, edges)`` pairs here; those of networkx are taken as well.
"""

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np

from kreinlearn import KreinRidgeClassifier
from kreinlearn.datasets import make_graphs

X, y = make_graphs(300, n_nodes=(8, 14), n_labels=4, n_chords=1, random_state=0)
sizes = [10, 30, 90]
names = ["weisfeiler_lehman", "wl_distance", "shortest_path"]
test = slice(150, 300)
error = {name: np.empty((3, len(sizes))) for name in names}
for name in names:
    for j, size in enumerate(sizes):
        for repeat in range(3):
            chosen = np.random.default_rng(repeat).choice(150, size, replace=False)
            model = KreinRidgeClassifier(name, random_state=0)
            model.fit([X[i] for i in chosen], y[chosen])
            error[name][repeat, j] = 100 * (1 - model.score(X[test], y[test]))

# %%
# Means of three draws of the labelled graphs, with standard errors.

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 4), width_ratios=(1, 1.6), layout="constrained")
for c, shift in ((0, 0.0), (1, 2.6)):
    graph = nx.Graph(X[int(np.flatnonzero(y == c)[0])].edges.tolist())
    places = {n: p + np.array([shift, 0]) for n, p in nx.kamada_kawai_layout(graph).items()}
    nx.draw(graph, places, ax=left, node_size=40, node_color="0.2", edge_color="0.5")
left.set_title("a tree and a ring with a chord")
for name, style in zip(names, ("o-", "s--", "^-."), strict=True):
    mean, spread = error[name].mean(axis=0), error[name].std(axis=0, ddof=1) / np.sqrt(3)
    right.errorbar(sizes, mean, spread, fmt=style, capsize=3, label=name)
right.set_xscale("log")
right.set_xticks(sizes, [str(n) for n in sizes])
right.set(xlabel="labelled graphs", ylabel="test error, %", ylim=(0, None))
right.legend(frameon=False)
plt.show()
