"""Matrices with all kinds of spectra, and models made from the definition without an object."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Matrix = Callable[[int, np.random.Generator], np.ndarray]


def rotated(d: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A symmetric matrix with the eigenvalues d."""
    Q = np.linalg.qr(rng.normal(size=(len(d), len(d))))[0]
    K = (Q * d) @ Q.T
    return (K + K.T) / 2


def indefinite(n: int, rng: np.random.Generator) -> np.ndarray:
    A = rng.normal(size=(n, n))
    return A + A.T


def smooth(n: int, rng: np.random.Generator) -> np.ndarray:
    X = rng.normal(size=(n, 2))
    return np.exp(-np.square(X[:, None] - X).sum(axis=2))


def centred(n: int, rng: np.random.Generator) -> np.ndarray:
    X = rng.normal(size=(n, 5))
    squares = np.abs(X[:, None] - X).sum(axis=2) ** 1.6
    J = np.eye(n) - 1 / n
    K = -0.5 * J @ squares @ J
    return (K + K.T) / 2


def repeated_objects(n: int, rng: np.random.Generator) -> np.ndarray:
    X = np.repeat(rng.normal(size=(n // 3 + 1, 2)), 3, axis=0)[:n]
    D = np.abs(X[:, None] - X).sum(axis=2)
    return np.exp(-(D**1.5)) - 0.5 * np.exp(-D)


def singular(n: int, rng: np.random.Generator) -> np.ndarray:
    return rotated(np.r_[np.linspace(-3, 5, n // 2), np.zeros(n - n // 2)], rng)


def two_eigenvalues(n: int, rng: np.random.Generator) -> np.ndarray:
    return rotated(np.where(np.arange(n) < n // 2, 2.0, -1.0), rng)


MATRICES: dict[str, Matrix] = {
    "indefinite": indefinite,
    "smooth": smooth,
    "centred": centred,
    "repeated objects": repeated_objects,
    "singular": singular,
    "two eigenvalues": two_eigenvalues,
}


def model_without(
    K: np.ndarray, w: np.ndarray, Y: np.ndarray, c: np.ndarray, left_out: int | None,
    intercept: bool, signed: bool,
) -> Callable[[np.ndarray], np.ndarray]:  # fmt: skip
    """The model of all objects but one, from the eigenvectors of their own kernel matrix.

    It takes similarities to all objects, of which that to the object left out is not looked at.
    """
    others = np.arange(len(K)) != (-1 if left_out is None else left_out)
    root = np.sqrt(w[others])
    d, U = np.linalg.eigh(root[:, None] * K[np.ix_(others, others)] * root)
    kept = np.abs(d) > 1e-12 * np.abs(d).max()
    t, penalty = (np.abs(d), np.where(d > 0, c[0], c[1])) if signed else (d * d, c[0])
    g = np.where(kept, (np.sign(d) if signed else d) / (t + penalty), 0.0)
    rest = np.where(kept, penalty / (t + penalty), 1.0)
    T = root[:, None] * Y[others]
    b = np.zeros(Y.shape[1])
    if intercept:
        left = (U * rest) @ (U.T @ root)
        b = left @ T / (left @ root)
    dual = root[:, None] * ((U * g) @ (U.T @ (T - np.outer(root, b))))
    return lambda k: k[..., others] @ dual + b
