"""Propositions 1 and 2 on real data: the library against dense solutions in plain numpy."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from sklearn.kernel_ridge import KernelRidge
from sklearn.svm import SVC

from kreinlearn import KreinRidge, Landmarks, SpectrumSVC
from reproduction import sets
from reproduction.reading import at_most, rows_of, say, table
from reproduction.report import Block, Section
from reproduction.scale import Scale
from reproduction.tasks import Measurements, Row, Task

Array = np.ndarray
NAMES = ("protein", "woodyplants50", "chickenpieces_20_60", "coilyork")
INSTEAD = "balls3d"  # if none of them is there
EPS = float(np.finfo(np.float64).eps)
PENALTIES = (1e-6, 1e-4, 1e-2, 1.0)  # n lambda over the largest |eigenvalue|
WELL = 1e-4  # the least penalty that has to give equality
UNEQUAL = 10.0  # lambda_minus divided by lambda_plus, in the control
BOXES = (1.0, 100.0)  # C times the mean of the diagonal of H
TIGHT, STEPS = 1e-7, 10**6  # tolerance and most steps of scikit-learn's machine
NEWTON_STEPS, CENTRING, SHORT_OF = 100, 0.1, 0.99  # of the interior point method
AT_BOUND = 1e-6  # multipliers within this share of C of 0 or C count as 0 or C
GAP = 1e-16  # mean product of multipliers and slacks at which the method ends
EQUAL, SOLVED, SAME_MACHINE, CLOSE = 1e-8, 1e-8, 1e-6, 1e-2  # limits of the claims


def names(scale: Scale) -> list[str]:
    """The sets on which the propositions are tried."""
    return [name for name in NAMES if name in sets.there(scale)] or [INSTEAD]


def tasks(scale: Scale) -> list[Task]:
    """One task per set."""
    keys = {f"propositions/{scale.name}/{sets.called(name)}": name for name in names(scale)}
    return [Task(key, partial(_measured, name, scale), 2.0) for key, name in keys.items()]


# The matrices, from their definitions


class Krein(NamedTuple):
    """K = -1/2 J (D o D) J of the training objects, rows of new ones, H = |K|, P = sign(K)."""

    K: Array  # (n, n)
    K_x: Array  # (s, n)
    H: Array
    P: Array
    largest: float  # |eigenvalue|


def krein(D: Array, D_x: Array) -> Krein:
    """The matrices of training dissimilarities D and of the rows D_x of new objects."""
    K, K_x = sets.centred_squares(D, D_x)
    E, U = np.linalg.eigh(K)
    size = np.abs(E)
    S = np.where(size > len(K) * EPS * size.max(), np.sign(E), 0.0)
    return Krein(K, K_x, (U * size) @ U.T, (U * S) @ U.T, float(size.max()))


def apart(f: Array, g: Array) -> float:
    """The largest difference, divided by the largest value."""
    return float(np.abs(f - g).max() / np.abs(g).max())


# Measuring


def _measured(name: str, scale: Scale) -> list[Row]:
    """All rows of one set, on its first fold."""
    data = sets.learning_set(name, scale)
    split = next(data.splits(scale.folds, scale.seed))
    space = krein(split.M_train, split.M_test)
    same = {"set": name, "n": len(split.y_train), "new": len(split.y_test)}
    Y = np.where(split.y_train[:, None] == np.array(data.classes), 1.0, -1.0)
    rows = [same | ridge_row(split, space, Y, share) for share in PENALTIES]
    return rows + [same | svm_row(split, space, Y[:, 0], box) for box in BOXES]


def ridge_row(split: sets.Split, space: Krein, Y: Array, share: float) -> Row:
    """Proposition 1: one output per class, on training and new objects."""
    n = len(Y)
    penalty = share * space.largest / n
    reference = KernelRidge(alpha=n * penalty, kernel="precomputed").fit(space.H, Y)
    expected = reference.predict(np.vstack([space.H, space.K_x @ space.P]))
    both = np.vstack([split.M_train, split.M_test])

    def predicted(lambda_minus: float) -> Array:
        model = KreinRidge(
            "precomputed_dissimilarity", landmarks=Landmarks(None, core="plain"),
            similarity="squared", lambda_plus=penalty, lambda_minus=lambda_minus,
            fit_intercept=False,
        )  # fmt: skip
        return np.asarray(model.fit(split.M_train, Y).predict(both))

    return {
        "proposition": 1,
        "share": share,
        "equal": apart(predicted(penalty), expected),
        "unequal": apart(predicted(UNEQUAL * penalty), expected),
        "no map": apart(reference.predict(space.K_x), expected[n:]),
    }


def svm_row(split: sets.Split, space: Krein, y: Array, box: float) -> Row:
    """Proposition 2: the first class against the others, on training and new objects."""
    n, C = len(y), box / float(np.mean(np.diagonal(space.H)))
    a, b = krein_machine(space, y, C)
    alpha = space.P @ (y * a)
    krein_f = np.vstack([space.K, space.K_x]) @ alpha + b
    beta, b_flip = flip_machine(space.H, y, C)
    flip_f = np.vstack([space.H, space.K_x @ space.P]) @ beta + b_flip
    model = SpectrumSVC("precomputed_dissimilarity", spectrum="flip", C=C).fit(split.M_train, y)
    ours = model.decision_function(np.vstack([split.M_train, split.M_test]))
    return {
        "proposition": 2,
        "box": box,
        "free": int(np.sum((a > AT_BOUND * C) & (a < (1 - AT_BOUND) * C))),
        "bound": int(np.sum(a >= (1 - AT_BOUND) * C)),
        "gap": duality_gap(space, y, C, a, alpha, b),
        "flip": apart(flip_f, krein_f),
        "ours": apart(ours, krein_f),
        "labels": int(np.sum((ours > 0) != (krein_f > 0))),
        "no map": apart(space.K_x @ beta + b_flip, krein_f[n:]),
    }


# The Krein machine: min 1/2 (|f_+|^2 + |f_-|^2) + C sum max(0, 1 - y f), f = k_x' alpha + b


def krein_machine(space: Krein, y: Array, C: float) -> tuple[Array, float]:
    """Multipliers a of the margins, alpha = P (y a), and b, by a primal-dual interior point.

    In units of C: y (K alpha + b) = 1 + s - t, a + c = 1, a'y = 0, a s = c t = tau -> 0.
    """
    n, Q = len(y), C * y[:, None] * (space.K @ space.P) * y
    a, c, s, t, b = np.full(n, 0.5), np.full(n, 0.5), np.ones(n), np.ones(n), 0.0
    for _ in range(NEWTON_STEPS):
        tau = (a @ s + c @ t) / (2 * n)
        if tau < GAP:
            break
        tau *= CENTRING
        push = 1 - Q @ a - b * y + tau / a - tau / c
        A = Q + np.diag(s / a + t / c)
        along, across = np.linalg.solve(A, np.column_stack([push, y])).T
        db = (y @ along + y @ a) / (y @ across)
        da = along - db * across
        ds, dt = (tau - s * da) / a - s, (tau + t * da) / c - t
        step = min(reach(v, dv) for v, dv in ((a, da), (c, -da), (s, ds), (t, dt)))
        a, c, b = a + step * da, c - step * da, b + step * db
        s, t = s + step * ds, t + step * dt
    return C * a, float(b)


def reach(v: Array, dv: Array) -> float:
    """The largest step, up to 1, with which v + step dv stays positive."""
    down = dv < 0
    return float(min(1.0, SHORT_OF * np.min(-v[down] / dv[down], initial=np.inf)))


def duality_gap(space: Krein, y: Array, C: float, a: Array, alpha: Array, b: float) -> float:
    """The duality gap of the Krein machine, divided by its objective: 0 only at the optimum."""
    hinge = np.maximum(0, 1 - y * (space.K @ alpha + b)).sum()
    primal = 0.5 * alpha @ space.H @ alpha + C * hinge
    dual = a.sum() - 0.5 * (y * a) @ space.H @ (y * a)
    return float((primal - dual) / primal)


def flip_machine(H: Array, y: Array, C: float) -> tuple[Array, float]:
    """Coefficients and constant of scikit-learn's machine on H, finished in double precision.

    libsvm stores kernel values in single precision. It tells which coefficients are 0 or C; the
    others, and the constant, are solved for so that their objects have margins of exactly 1.
    """
    svc = SVC(C=C, kernel="precomputed", tol=TIGHT, max_iter=STEPS).fit(H, y)
    beta = np.zeros(len(y))  # in units of C
    beta[svc.support_] = svc.dual_coef_[0] / C
    free = (beta != 0) & (np.abs(beta) < 1 - TIGHT)
    fixed, ones = beta[~free], np.ones((free.sum(), 1))
    A = np.block([[C * H[np.ix_(free, free)], ones], [ones.T, np.zeros((1, 1))]])
    rest = np.append(y[free] - C * H[np.ix_(free, ~free)] @ fixed, -fixed.sum())
    *inner, b = np.linalg.lstsq(A, rest, rcond=None)[0]
    beta[free] = inner
    return C * beta, float(b)


# Reading


def section(scale: Scale, measurements: Measurements) -> Section:
    """Both propositions: tables of differences, and whether they are small."""
    rows = rows_of(tasks(scale), measurements)
    ridge, svm = ([row for row in rows if row["proposition"] == i] for i in (1, 2))
    svm = [row | {"gap": abs(row["gap"])} for row in svm]
    ours = _cells(ridge, {"share": ".0e", "equal": ".1e", "unequal": ".1e", "no map": ".1e"})
    blocks: list[Block] = [say("propositions.first"), table("propositions.ridge", ours)]
    ours = _cells(svm, {"box": "g", "free": "", "bound": "", "gap": ".0e", "flip": ".1e",
                        "ours": ".1e", "labels": "", "no map": ".1e"})  # fmt: skip
    blocks += [say("propositions.second"), table("propositions.svm", ours)]
    claims = [
        (f"1, n lambda from {WELL:.0e} of the largest |eigenvalue|",
         [row["equal"] for row in ridge if row["share"] >= WELL], EQUAL),
        ("2, duality gap", [row["gap"] for row in svm], SOLVED),
        ("2, machine on H", [row["flip"] for row in svm], SAME_MACHINE),
        ("2, SpectrumSVC", [row["ours"] for row in svm], CLOSE),
    ]  # fmt: skip
    checks = [
        at_most(f"Proposition {a}", b, limit, ".1e", f"{limit:.0e}") for a, b, limit in claims
    ]
    numbers = {
        f"propositions/1/{row['set']}/n lambda={row['share']:g}/digits": digits(row["equal"])
        for row in ridge
    }
    for row in svm:
        name = f"propositions/2/{row['set']}/C h={row['box']:g}/digits"
        numbers |= {f"{name}, SVM on H": digits(row["flip"])}
        numbers |= {f"{name}, SpectrumSVC": digits(row["ours"])}
    return Section("Propositions 1 and 2", blocks, checks, numbers)


def digits(difference: float) -> float:
    """The number of digits that agree."""
    return float(-np.log10(max(difference, EPS)))


def _cells(rows: list[Row], styles: dict[str, str]) -> list[list[str]]:
    """The values of each row, in the format of each key."""
    every = {"set": "", "n": "", "new": "", **styles}
    return [[format(row[key], style) for key, style in every.items()] for row in rows]
