"""Callbacks of scikit-learn: what they are told of a fit, and that nothing else changes."""

from __future__ import annotations

import pickle
import sys
import threading

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import kreinlearn as kl
from kreinlearn.kernels import pairwise
from kreinlearn.progress import PARTS, fit_task, tasks_of
from tests.models import FRONT, LEARNERS

callback = pytest.importorskip("sklearn.callback", reason="scikit-learn has them from 1.9 on")
ProgressBar, ScoringMonitor = callback.ProgressBar, callback.ScoringMonitor

N = 9000  # more than are held
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3))
LABELS = np.array(["a", "b"])[(X[:, 0] > 0).astype(int)]
GIVEN = {"kernel": "delta_gauss", "landmarks": kl.Landmarks(10, "uniform"), "random_state": 0}


class Recorder:
    """Writes down what it is told; as those of scikit-learn, it may be on an outer estimator."""

    max_propagation_depth = None

    def __init__(self):
        self.events = []

    def setup(self, estimator, context):
        self.events.append(("setup", type(estimator).__name__, 0))

    def teardown(self, estimator, context):
        self.events.append(("teardown", type(estimator).__name__, 0))

    def on_fit_task_begin(self, estimator, context):
        self.events.append(("begin", context.task_name, context.max_subtasks))

    def on_fit_task_end(self, estimator, context):
        self.events.append(("end", context.task_name, context.max_subtasks))

    def of(self, kind, without="part"):
        return [name for event, name, _ in self.events if event == kind and name != without]


def test_a_fit_is_a_task_and_its_long_steps_are_tasks_of_it():
    recorder = Recorder()
    kl.KreinRidgeClassifier(**GIVEN).set_callbacks(recorder).fit(X, LABELS)
    assert recorder.events[0] == ("setup", "KreinRidgeClassifier", 0)
    assert recorder.events[1] == ("begin", "fit", None)
    assert recorder.events[-2:] == [("end", "fit", None), ("teardown", "KreinRidgeClassifier", 0)]
    assert recorder.of("begin") == ["fit", "landmarks", "kernel rows"]
    assert recorder.of("end") == ["landmarks", "kernel rows", "fit"]
    at = recorder.events.index(("begin", "kernel rows", PARTS))
    parts = recorder.events[at + 1 : recorder.events.index(("end", "kernel rows", PARTS))]
    assert parts == [("begin", "part", 0), ("end", "part", 0)] * PARTS


@pytest.mark.parametrize(
    "model", [*LEARNERS, *FRONT, kl.SpectrumSVC, kl.KreinNystroem, kl.KreinPCA]
)
def test_every_estimator_reports(model):
    recorder = Recorder()
    y = X[:60, 0] if "Classifier" not in model.__name__ and "SVC" not in model.__name__ else None
    y = LABELS[:60] if y is None else y
    fitted = model().set_callbacks(recorder).fit(X[:60], y)
    assert recorder.of("begin")[0] == "fit"
    assert recorder.of("begin").count("fit") == recorder.of("end").count("fit") == 1
    assert len(recorder.of("begin")) > 1
    assert sorted(recorder.of("begin")) == sorted(recorder.of("end"))
    assert not {"_callback_fit_ctx", "_skl_callbacks_to_teardown"} & vars(fitted).keys()
    told = len(recorder.events)
    (fitted.predict if hasattr(fitted, "predict") else fitted.transform)(X[:60])
    assert len(recorder.events) == told  # of fits alone


def test_few_rows_have_as_many_parts():
    recorder = Recorder()
    kernel = pairwise(lambda a, b: float(min(a[0], b[0])))
    kl.KreinNystroem(kernel, landmarks=2).set_callbacks(recorder).fit(X[:4])
    steps = [event for event in recorder.events if event[0] == "begin" and event[1] == "landmarks"]
    assert steps
    assert all(1 <= n <= 8 for _, _, n in steps)


def test_a_fit_that_fails_takes_callbacks_down():
    recorder = Recorder()
    model = kl.KreinRidge(**GIVEN).set_callbacks(recorder)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.full((5, 2), np.nan), np.ones(5))
    assert recorder.of("teardown") == ["KreinRidge"]
    assert recorder.of("end") == []
    model.fit(X[:50], X[:50, 0])
    assert recorder.of("end")[-1] == "fit"


def test_a_step_that_fails_has_no_end_as_a_task_of_scikit_learn():
    """One of its pipelines, of which a part fails, is the measure."""
    recorder = Recorder()

    def failing(A, B):
        if "kernel rows" in recorder.of("begin"):
            raise OverflowError("amidst it")
        return A @ B.T

    model = kl.KreinRidge(**{**GIVEN, "kernel": failing})
    for each, fits in ((model, 1), (make_pipeline(StandardScaler(), clone(model)), 2)):
        recorder.events.clear()
        with pytest.raises(OverflowError, match="amidst it"):
            each.set_callbacks(recorder, ProgressBar(max_propagation_depth=None)).fit(X, X[:, 0])
        assert not [one for one in threading.enumerate() if "Monitor" in type(one).__name__]
        assert recorder.of("setup") == recorder.of("teardown") == [type(each).__name__]
        open_fits = recorder.of("begin").count("fit") - recorder.of("end").count("fit")
        assert open_fits == fits
        assert "kernel rows" not in recorder.of("end")
        assert not {"_callback_fit_ctx", "_skl_callbacks_to_teardown"} & vars(each).keys()
    recorder.events.clear()
    model.set_params(kernel="gaussian").fit(X[:60], X[:60, 0])
    assert sorted(recorder.of("begin")) == sorted(recorder.of("end"))


class Told(Recorder):
    """Writes down the data of a fit, too."""

    def on_fit_task_begin(self, estimator, context, *, X=None, y=None, metadata=None):
        super().on_fit_task_begin(estimator, context)
        self.data = X, y, metadata


def test_a_task_within_a_task_is_part_of_it():
    told, model = Told(), kl.KreinRidge(**GIVEN)
    model.set_callbacks(told)
    assert tasks_of(model) is None  # outside of a fit
    with fit_task(model, X[:9], LABELS[:9], np.ones(9)):
        assert tasks_of(model) is not None
        with fit_task(model, X[:3]):
            pass
        assert told.events == [("setup", "KreinRidge", 0), ("begin", "fit", None)]
    assert told.events[2:] == [("end", "fit", None)]
    for found, expected in zip(told.data[:2], (X[:9], LABELS[:9]), strict=True):
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(told.data[2]["sample_weight"], np.ones(9))


def test_a_task_that_fails_has_no_end():
    recorder, model = Recorder(), kl.KreinRidge(**GIVEN)
    model.set_callbacks(recorder)
    with pytest.raises(OverflowError), fit_task(model, X[:9]):
        raise OverflowError
    assert recorder.of("begin") == ["fit"]
    assert recorder.of("end") == []


def test_models_within_a_fit_are_part_of_it():
    recorder = Recorder()
    model = kl.KreinRidgeClassifier(**GIVEN, probability=True).set_callbacks(recorder)
    model.fit(X[:300], LABELS[:300])
    assert recorder.of("setup") == recorder.of("teardown") == ["KreinRidgeClassifier"]
    assert recorder.of("begin").count("fit") == 1
    assert pickle.loads(pickle.dumps(model)).predict_proba(X[:3]).shape == (3, 2)


def test_nothing_else_changes(monkeypatch):
    plain = kl.KreinRidge(**GIVEN).fit(X, X[:, 0])
    told = kl.KreinRidge(**GIVEN).set_callbacks(Recorder()).fit(X, X[:, 0])
    np.testing.assert_array_equal(plain.dual_coef_, told.dual_coef_)
    assert told.get_params() == plain.get_params()
    copy = clone(told)
    assert copy.get_params() == plain.get_params()
    assert not hasattr(copy, "coef_")
    assert len(pickle.loads(pickle.dumps(told))._skl_callbacks) == 1
    assert not hasattr(told.set_callbacks(), "_skl_callbacks")


def test_partial_fits_report():
    recorder = Recorder()
    model = kl.KreinRidge(**GIVEN).set_callbacks(recorder)
    model.partial_fit(X[:500], X[:500, 0])
    model.partial_fit(X[500:900], X[500:900, 0])
    assert recorder.of("begin").count("fit") == recorder.of("teardown").count("KreinRidge") == 2
    assert recorder.of("begin")[-1] == "new rows"


def test_steps_are_below_those_of_a_search_and_a_pipeline():
    recorder = Recorder()
    model = make_pipeline(StandardScaler(), kl.KreinRidge(**GIVEN, lambda_plus=1.0))
    search = GridSearchCV(model, {"kreinridge__lambda_minus": [0.1, 1.0]}, cv=2)
    search.set_callbacks(recorder).fit(X[:200], X[:200, 0])
    assert recorder.of("setup") == recorder.of("teardown") == ["GridSearchCV"]
    assert recorder.of("begin").count("landmarks") == 5  # four folds and the whole


def test_the_bar_of_scikit_learn_shows_our_steps(capsys):
    model = kl.KreinRidgeClassifier(**GIVEN, verbose=1).set_callbacks(ProgressBar())
    model.fit(X, LABELS)
    said = capsys.readouterr()
    assert "KreinRidgeClassifier - fit" in said.out
    assert "KreinRidgeClassifier - kernel rows" in said.out
    assert "100%" in said.out
    assert not said.err
    copy = pickle.loads(pickle.dumps(model))
    assert copy.predict(X[:50]).tolist() == model.predict(X[:50]).tolist()


def test_the_bar_of_scikit_learn_takes_the_place_of_ours(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    kl.KreinRidge(**GIVEN, verbose=1).set_callbacks(Recorder()).fit(X, X[:, 0])
    assert capsys.readouterr().err == ""


def test_a_search_in_processes_shows_them_too(capsys):
    search = GridSearchCV(kl.KreinRidge(**GIVEN), {"lambda_plus": [0.1, 1.0]}, cv=2, n_jobs=2)
    search.set_callbacks(ProgressBar(max_propagation_depth=None)).fit(X[:300], X[:300, 0])
    assert "KreinRidge - fit" in capsys.readouterr().out


def test_a_monitor_of_scores_sees_the_fitted_model():
    monitor = ScoringMonitor(scoring="r2")
    model = kl.KreinRidge(**GIVEN).set_callbacks(monitor).fit(X[:300], X[:300, 0])
    (row,) = monitor.get_logs(select="most_recent").data
    assert row["r2"] == pytest.approx(model.score(X[:300], X[:300, 0]))
