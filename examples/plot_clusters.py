"""
Which groups are there?
=======================

Strings without labels. ``KreinKMeans`` finds groups by an edit distance, and a medoid of each,
the string nearest to its mean. The features that it works on are open to all of scikit-learn:
``KreinNystroem`` hands them to ``HDBSCAN`` and ``GaussianMixture``, which know no strings.

All of them are compared with the classes, which none has seen.
"""

import matplotlib.pyplot as plt
from sklearn.cluster import HDBSCAN
from sklearn.manifold import TSNE
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.pipeline import make_pipeline

from kreinlearn import KreinKMeans, KreinNystroem
from kreinlearn.datasets import make_noisy_strings

X, y = make_noisy_strings(300, n_classes=4, noise=7, random_state=0)
model = KreinKMeans("auto", kernel="levenshtein", random_state=0).fit(X)
print(f"{model.n_clusters_} groups, represented by")
print("\n".join(model.medoids_))

# %%
# The same distance in front of other methods.

features = KreinNystroem("levenshtein", rank=8, random_state=0)
found = {
    "KreinKMeans": model.labels_,
    "HDBSCAN": make_pipeline(features, HDBSCAN(min_cluster_size=15, copy=True)).fit_predict(X),
    "GaussianMixture": make_pipeline(features, GaussianMixture(4, random_state=0)).fit_predict(X),
}

# %%
# t-SNE of the features; white circles are medoids, and what belongs to no group of ``HDBSCAN`` is
# grey.

places = make_pipeline(features, TSNE(random_state=0)).fit_transform(X)
fig, panels = plt.subplots(1, 3, figsize=(9, 3.4), sharey=True, layout="constrained")
for ax, (name, labels) in zip(panels, found.items(), strict=True):
    outside = labels < 0
    ax.scatter(*places[outside].T, s=9, color="0.7")
    ax.scatter(*places[~outside].T, s=9, c=labels[~outside], cmap="viridis")
    ax.set(title=f"{name}\nindex {adjusted_rand_score(y, labels):.2f}", xlabel="t-SNE 1")
panels[0].scatter(*places[model.medoid_indices_].T, s=50, facecolors="white", edgecolors="black")
panels[0].set_ylabel("t-SNE 2")
plt.show()
