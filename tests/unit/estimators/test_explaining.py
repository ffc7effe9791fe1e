"""Decisions as sums over landmarks."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

import kreinlearn as kl
from kreinlearn.datasets import make_graphs, make_noisy_strings, make_warped_series

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 2))
Y = np.sin(2 * X[:, 0]) + X[:, 1]
LABELS = np.array(["low", "middle", "high"])[np.digitize(Y, [-0.7, 0.7])]
NEW = RNG.normal(size=(12, 2))
GIVEN = {"lambda_plus": 0.01, "lambda_minus": 0.01, "random_state": 0}
CLASSIFIERS = [
    kl.KreinClassifier("gaussian", random_state=0),
    kl.KreinClassifier("gaussian", landmarks=20, random_state=0),
    kl.KreinRidgeClassifier("delta_gauss", **GIVEN),
    kl.KreinVCRidgeClassifier("gaussian", landmarks=20, random_state=0),
    kl.KreinSVC("gaussian", **GIVEN),
    kl.KreinSVC("gaussian", lambda_l1=1e-3, **GIVEN),
    kl.SimilarityRidgeClassifier("gaussian", lambda_plus=0.01, random_state=0),
]


def decision_of_predicted(model, A):
    scores = model.decision_function(A)
    predicted = np.searchsorted(model.classes_, model.predict(A))
    if scores.ndim == 1:
        return np.where(predicted == 1, scores, -scores)
    return scores[np.arange(len(scores)), predicted]


def near(found, wanted):
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-10 * np.abs(wanted).max())


@pytest.mark.parametrize("model", CLASSIFIERS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("two", [False, True])
def test_contributions_add_up_to_the_decision(model, two):
    y = np.where(LABELS == "low", "low", "high") if two else LABELS
    model.fit(X, y)
    found = model.explain(NEW, n=len(X))
    near([one.value for one in found], decision_of_predicted(model, NEW))
    assert [one.target for one in found] == model.predict(NEW).tolist()
    for one in found:
        whole = sum(reason.contribution for reason in one.reasons)
        assert whole == pytest.approx(one.parts["landmarks"], abs=1e-10 * abs(one.value) + 1e-12)
        assert sum(one.parts.values()) == one.value
        values = [reason.contribution for reason in one.reasons]
        assert values == sorted(values, reverse=True)
        for reason in one.reasons:
            assert reason.label == y[reason.landmark]
            np.testing.assert_array_equal(reason.example, X[reason.landmark])


def test_pairs_of_classes_are_summed():
    model = kl.SpectrumSVC("gaussian", C=1.0, random_state=0).fit(X, LABELS)
    pairs = model._scores(NEW)
    predicted = np.searchsorted(model.classes_, model.predict(NEW))
    wanted = [
        sum(
            pairs[i, p] * (int(c == b) - int(c == a))
            for p, (a, b) in enumerate(combinations(range(3), 2))
        )
        for i, c in enumerate(predicted)
    ]
    found = model.explain(NEW)
    sums = [one.parts["landmarks"] + one.parts["constant"] for one in found]
    near(sums, np.array(wanted))
    near([one.value for one in found], decision_of_predicted(model, NEW))


@pytest.mark.parametrize(
    ("make", "kernel"),
    [
        (make_noisy_strings, "levenshtein"), (make_warped_series, "dtw"),
        (make_graphs, "wl_distance"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", [kl.KreinClassifier, kl.KreinRidgeClassifier])
def test_distances_of_objects(make, kernel, kind):
    A, y = make(60, random_state=0)[:2]
    model = kind(kernel, landmarks=25, random_state=0).fit(A[:50], y[:50])
    found = model.explain(A[50:])
    near([one.value for one in found], decision_of_predicted(model, A[50:]))


def test_without_the_five_strongest_the_score_falls_by_what_they_contribute():
    model = kl.KreinRidgeClassifier("gaussian", **GIVEN).fit(X, LABELS)
    before = decision_of_predicted(model, NEW[:1])[0]
    (one,) = model.explain(NEW[:1], 5)
    c = np.flatnonzero(model.classes_ == one.target)[0]
    strongest = one.reasons[:5]
    assert all(reason.contribution > 0 for reason in strongest)
    places = [np.flatnonzero(model.landmark_indices_ == r.landmark)[0] for r in strongest]
    model.dual_coef_[places] = 0.0
    after = model.decision_function(NEW[:1])[0, c]
    lost = sum(reason.contribution for reason in strongest)
    assert before - after == pytest.approx(lost, rel=1e-10)


def test_regression_and_its_outputs():
    model = kl.KreinRidge("gaussian", **GIVEN).fit(X, Y)
    near([one.value for one in model.explain(NEW)], model.predict(NEW))
    both = kl.KreinRidge("gaussian", **GIVEN).fit(X, np.column_stack([Y, -Y]))
    near([one.value for one in both.explain(NEW, target=1)], both.predict(NEW)[:, 1])
    with pytest.raises(ValueError, match="number of one of 2 outputs, 0 to 1"):
        both.explain(NEW)


def test_a_class_that_is_not_predicted():
    model = kl.KreinRidgeClassifier("gaussian", **GIVEN).fit(X, LABELS)
    found = model.explain(NEW, target="middle")
    near([one.value for one in found], model.decision_function(NEW)[:, 2])
    with pytest.raises(ValueError, match="'none' is no class of the model"):
        model.explain(NEW, target="none")


def test_bad_input_111_how_many_landmarks_are_shown():
    model = kl.KreinRidge("gaussian", **GIVEN).fit(X, Y)
    for n in (0, -1, 2.5, True, "5"):
        with pytest.raises(ValueError, match="positive number of landmarks"):
            model.explain(NEW, n)


def test_a_table_and_a_text():
    pytest.importorskip("pandas")
    model = kl.KreinClassifier("gaussian", random_state=0).fit(X, LABELS)
    found = model.explain(NEW, 2)
    frame = found.to_frame()
    totals = frame.groupby("object")["contribution"].sum().to_numpy()
    near(totals, np.array([one.value for one in found]))
    assert set(frame["part"]) >= {"for", "other landmarks", "constant", "neighbours"}
    text = str(found)
    assert text.count("all other landmarks") == len(NEW)
    assert f"object 0: {found[0].target}" in text


def test_a_loaded_model_explains_the_same(tmp_path):
    A, y = make_noisy_strings(40, random_state=0)[:2]
    model = kl.KreinClassifier("levenshtein", random_state=0).fit(A, y)
    model.save(tmp_path / "m.krein")
    assert str(kl.load(tmp_path / "m.krein").explain(A[:3])) == str(model.explain(A[:3]))


def test_landmarks_that_are_given_have_no_labels():
    model = kl.KreinRidge("gaussian", landmarks=NEW, **GIVEN).fit(X, Y)
    (one,) = model.explain(X[:1], 3)
    assert all(reason.label is None for reason in one.reasons)
    near([one.value], model.predict(X[:1]))


def test_no_value_is_evaluated_twice():
    calls = []

    def d(a, b):
        calls.append(1)
        return float(np.abs(a - b).sum())

    kernel = kl.dissimilarity(kl.pairwise(d))
    model = kl.KreinRidgeClassifier(kernel, landmarks=20, similarity="exp", **GIVEN)
    model.fit(list(X), LABELS)
    needed = model._columns.n_evaluated(model.n_landmarks_)
    calls.clear()
    model.explain(list(NEW), 2)
    assert len(calls) == len(NEW) * needed
