"""What a person is told who knows the data and not the method: answers, and what to run next."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from kreinlearn import cli
from kreinlearn.cli import kernels
from kreinlearn.cli.arguments import LEARNERS, OBJECTS
from kreinlearn.evaluation.learners import KNOWN, learners_for
from kreinlearn.kernels import resolve
from tests.unit.cli.commands import printed, run, write_csv

N = 60
RNG = np.random.default_rng(0)
KINDS = np.arange(N) % 3
WORDS = ["".join(RNG.choice(list("abcdef"[c : c + 3]), size=7)) for c in KINDS]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    kind = [f"kind {c}" for c in KINDS]
    length = [10 * len(set(word)) + 0.5 * i for i, word in enumerate(WORDS)]
    write_csv(tmp_path / "w.csv", {"text": WORDS, "kind": kind})
    write_csv(tmp_path / "p.csv", {"text": WORDS, "price": length})
    mixed = {"id": np.arange(5, N + 5), "text": WORDS, "size": KINDS + RNG.normal(size=N)}
    write_csv(tmp_path / "mixed.csv", {**mixed, "weight": RNG.normal(size=N), "kind": kind})


# fit


@pytest.mark.parametrize("estimator", ["krein", "ridge", "svc"])
def test_fit_says_the_error_to_expect_and_what_to_run_next(
    estimator: str, capsys: pytest.CaptureFixture[str]
) -> None:
    more = ["--kernel", "levenshtein", "--estimator", estimator, "-o", "m.krein"]
    run("fit", "w.csv", "--target", "kind", *more)
    out, said = capsys.readouterr()
    assert out.startswith("expected error: ")
    assert "% of new objects get a wrong kind (s.e. " in out
    assert "66.7 % if kind 0 is always guessed" in out
    assert "next: kreinlearn predict m.krein NEW_FILE -o out.csv" in said
    compare = "kreinlearn evaluate w.csv --target kind --kernel levenshtein --html report.html"
    assert f"compare: {compare}" in said
    found = printed(capsys, "fit", "w.csv", "--target", "kind", *more, "--force", "--quiet")
    assert 0 <= found["expected_error"] < 2 / 3
    assert found["expected_error_std"] >= 0


def test_fit_of_numbers_says_r_squared_and_the_error_in_their_unit(
    capsys: pytest.CaptureFixture[str],
) -> None:
    flags = ["--target", "price", "--kernel", "levenshtein", "-o", "m.krein"]
    run("fit", "p.csv", *flags)
    out = capsys.readouterr().out
    assert "in the unit of price (s.e. " in out
    assert "R^2 = " in out


@pytest.mark.parametrize(
    ("target", "guess"), [("kind", "no better than guessing"), ("price", "if the mean is always")]
)
def test_nothing_learned_is_said_and_no_prediction_is_proposed(
    target: str, guess: str, capsys: pytest.CaptureFixture[str]
) -> None:
    # Neighbours in the file are alike in size and of different kinds, so that any guess misleads.
    sizes = np.repeat(np.arange(N // 2), 2) * 10.0 + np.tile([0.0, 1.0], N // 2)
    values = {"kind": ["a", "b"] * (N // 2), "price": [-10.5, 10.5] * (N // 2)}[target]
    write_csv(Path("noise.csv"), {"size": sizes, target: values})
    flags = ["noise.csv", "--target", target, "--kernel", "gaussian"]
    run("fit", *flags, "--kernel-param", "width=1", "-o", "m.krein")
    out, said = capsys.readouterr()
    assert guess in out
    assert "nothing was learned" in out
    assert "nothing was learned: try other columns (--column) or another similarity" in said
    assert "compare: kreinlearn evaluate noise.csv" in said
    assert "next:" not in said
    run("evaluate", *flags, "--learners", "constant", "--markdown", "r.md")
    out, said = capsys.readouterr()
    assert out.startswith("Nothing was learned: always the m")
    assert "nothing was learned: try other columns" in said
    assert "next:" not in said
    assert "What to run next" not in Path("r.md").read_text("utf8")


@pytest.mark.parametrize("command", ["fit", "evaluate"])
@pytest.mark.parametrize("estimator", ["krein", "ridge"])
def test_a_target_that_never_changes(
    command: str, estimator: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write_csv(Path("same.csv"), {"text": WORDS, "price": [5.5] * N})
    flags = ["-o", "m.krein", "--estimator", estimator] if command == "fit" else []
    assert cli.main([command, "same.csv", "--target", "price", *flags]) == 1
    assert "price is 5.5 in every row: there is nothing to learn" in capsys.readouterr().err
    assert not Path("m.krein").exists()


def test_tiny_numbers_have_an_error_to_expect(capsys: pytest.CaptureFixture[str]) -> None:
    """Their squares are zero in floating point."""
    prices = [1e-200 * (c + 1) for c in KINDS]
    write_csv(Path("tiny.csv"), {"text": WORDS, "price": prices})
    flags = ["--target", "price", "--kernel", "levenshtein", "--quiet", "-o", "m.krein"]
    found = printed(capsys, "fit", "tiny.csv", *flags)
    assert 0 < found["expected_error"] < 1e-199
    assert 0 < found["r2"] < 1


def test_a_model_is_kept_if_its_error_cannot_be_found(capsys: pytest.CaptureFixture[str]) -> None:
    """Three objects are too few for folds."""
    write_csv(Path("few.csv"), {"text": WORDS[:3], "kind": ["a", "b", "b"]})
    flags = ["--kernel", "levenshtein", "--estimator", "ridge", "-o", "m.krein"]
    run("fit", "few.csv", "--target", "kind", *flags)
    assert "the error to expect is not known (cross-validation: " in capsys.readouterr().err
    assert Path("m.krein").exists()


def test_classes_that_are_called_like_a_missing_value_are_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    kinds = [["a", "b", "n/a"][c] for c in KINDS]
    write_csv(Path("gaps.csv"), {"text": WORDS, "kind": kinds})
    run("evaluate", "gaps.csv", "--target", "kind", "--learners", "constant")
    said = " ".join(capsys.readouterr().err.split())
    assert "kind: 'n/a' of 20 rows is learned as a class like the others; if it" in said


def test_advice_names_no_flag_that_is_given_already(capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--target", "price", "--estimator", "ridge", "--probabilities", "-o", "m.krein"]
    with pytest.raises(SystemExit):
        cli.main(["fit", "p.csv", *flags])
    said = capsys.readouterr().err
    assert "KreinRidge takes no --probabilities; leave it out" in said
    assert "--estimator ridge" not in said.partition("leave it out")[2]


# Columns


def test_a_kernel_on_numbers_names_the_columns_that_it_leaves_out(
    capsys: pytest.CaptureFixture[str],
) -> None:
    run("fit", "mixed.csv", "--target", "kind", "--kernel", "gaussian", "-o", "m.krein")
    said = capsys.readouterr().err
    assert "left out, because they only name the rows: id" in said
    assert "left out, because this kernel takes numbers: text" in said
    assert "columns: size (number), weight (number)" in said


def test_a_mixed_table_is_not_cut_down_to_its_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    found = printed(capsys, "inspect", "mixed.csv", "--target", "kind", "--quiet")
    assert found["n_objects"] == N
    flags = ["--target", "kind", "--estimator", "ridge", "-o", "m.krein"]
    found = printed(capsys, "fit", "mixed.csv", *flags, "--quiet")
    assert found["kernel"] == "gower"
    run("predict", "m.krein", "mixed.csv", "-o", "out.csv", "--quiet")
    assert len(Path("out.csv").read_text().splitlines()) == N + 1


# evaluate


def test_evaluate_answers_first_and_then_says_where_it_errs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    flags = ["--target", "kind", "--kernel", "levenshtein", "--learners", "ridge,constant"]
    run("evaluate", "w.csv", *flags, "--markdown", "r.md", "--html", "r.html")
    out, said = capsys.readouterr()
    assert out.startswith("KreinRidgeClassifier gives ")
    order = ["always guessing kind 0 gets 33% right", "Errors of each class",
             "Which class was taken for which", "The classes that are confused most",
             "w.csv, levenshtein, 5 folds"]  # fmt: skip
    assert [out.index(one) for one in order] == sorted(out.index(one) for one in order)
    step = "kreinlearn fit w.csv --target kind --kernel levenshtein --estimator ridge -o"
    assert f"next: {step} model.krein" in said
    for page in (Path("r.md").read_text("utf8"), Path("r.html").read_text("utf8")):
        order = ["always guessing kind 0", "Errors of each class", "What to run next", step,
                 "Which learner errs least"]  # fmt: skip
        at = [page.index(one, page.find("<h1>") + 1) for one in order[:2]]
        assert at == sorted(at)
        assert page.rindex("Errors of each class") < page.rindex(step)
        assert page.rindex(step) < page.rindex("Which learner errs least")
    words = shlex.split(step + " model.krein")
    assert cli.main([*words[1:], "--quiet"]) == 0


def test_evaluate_recommends_the_learner_to_try_first_if_a_lead_may_be_chance(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kreinlearn.evaluation.verdict.LEVEL", 0.0)  # any lead may be chance
    flags = ["--target", "kind", "--kernel", "levenshtein", "--learners", "krein,ridge,neighbours"]
    run("evaluate", "w.csv", *flags)
    out, said = capsys.readouterr()
    assert "next: kreinlearn fit w.csv --target kind --kernel levenshtein -o model.krein" in said
    first = out.partition(".\n")[0]
    assert "the best of 3 learners" in first
    assert "KreinClassifier" in first
    found = printed(capsys, "evaluate", "w.csv", *flags)
    assert found["recommended"] == "KreinClassifier"


def test_evaluate_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--target", "price", "--kernel", "levenshtein", "--learners", "krein,constant"]
    run("evaluate", "p.csv", *flags)
    out = capsys.readouterr().out
    assert "of the variance (R^2 = " in out
    assert "The predictions that are furthest off" in out


def test_every_learner_has_a_word() -> None:
    for place, task in enumerate(("classification", "regression")):
        named = [name for both in LEARNERS.values() for name in both[place]]
        assert sorted(named) == sorted(learner.name for learner in KNOWN[task])
        for word, both in LEARNERS.items():  # Python knows the same words
            if both[place]:
                assert [one.name for one in learners_for(task, word)] == list(both[place])
            else:
                with pytest.raises(ValueError, match=f"learner '{word}' is not known for"):
                    learners_for(task, word)


def test_python_proposes_a_learner_for_a_word_that_is_not_known() -> None:
    with pytest.raises(ValueError, match=r"learner 'neighbors' .* \(did you mean 'neighbours'\?\)"):
        learners_for("classification", ["neighbors"])
    with pytest.raises(ValueError, match=r"\(did you mean 'KreinRidgeClassifier'\?\); known are"):
        learners_for("classification", ["kreinridgeclassifer"])


def test_learners_are_chosen_by_a_word_or_by_their_names(
    capsys: pytest.CaptureFixture[str],
) -> None:
    flags = ["--target", "kind", "--kernel", "levenshtein", "--quiet", "--cv", "2"]
    wanted = ["--learners", "spectrum-svc,K nearest neighbours", "--learners", "constant"]
    found = printed(capsys, "evaluate", "w.csv", *flags, *wanted)
    assert {score["name"] for score in found["scores"]} == {
        "SpectrumSVC flip", "SpectrumSVC clip", "k nearest neighbours",
        "always the most frequent class",
    }  # fmt: skip
    for name in ("svc", "KreinSVC"):
        flags = ["--target", "price", "--kernel", "levenshtein", "--learners", name]
        assert cli.main(["evaluate", "p.csv", *flags]) == 1
        assert f"learner {name!r} is not known for regression" in capsys.readouterr().err


# kernels


def test_all_kernels_are_listed_with_what_they_take(capsys: pytest.CaptureFixture[str]) -> None:
    run("kernels")
    out = capsys.readouterr().out
    listed = {one.name: one for one in kernels.listing()}
    for name in kernels.names():
        same = [one for one in listed if type(resolve(one)) is type(resolve(name))]
        assert name in listed or same
    for one in listed.values():
        assert one.name in out
        assert one.objects in OBJECTS
        assert one.what.count("(") == one.what.count(")")
        domain = resolve(one.name).domain
        assert domain.is_vectors is (one.objects == "vectors"), one.name
        assert domain.is_matrix is (one.objects == "matrices")
        assert domain.is_records is (one.objects == "records")
    assert "[needs the extra bio]" in out
    run("kernels", "--objects", "texts")
    out = capsys.readouterr().out
    assert "levenshtein" in out
    assert "dtw" not in out


WITHOUT_EXTRAS = """
import json, sys

for module in ("parasail", "aeon", "ot"):
    sys.modules[module] = None  # as if it were not installed

import numpy as np
from kreinlearn.cli import kernels
from kreinlearn.kernels import resolve

samples = {
    "texts": ["ACCA", "CA"],
    "series": [np.arange(9.0), np.arange(7.0) ** 2],  # of equal length some need no extra
    "points": [np.eye(4, 2) + 1, np.eye(5, 2)[::-1] * 2],
    "graphs": [(["a", "b"], [(0, 1)]), (["a"], [])],
    "sets": [{1, 2}, {2}],
}
numbered = [(np.eye(3), [(0, 1)]), (np.ones((2, 3)), [])]  # some take texts or graphs of a kind
own = {"weighted_degree": ["ACCA", "CACA"], "sliced_wl": numbered, "wasserstein_wl": numbered}
found = {}
for one in kernels.listing():
    if one.objects not in samples:
        found[one.name] = [one.extra, ""]
        continue
    X, kernel = own.get(one.name, samples[one.objects]), resolve(one.name)
    try:
        kernel.fit(X, np.random.default_rng(0))
        assert np.shape(kernel(X, X)) == (2, 2)
        found[one.name] = [one.extra, ""]
    except ImportError as error:
        found[one.name] = [one.extra, str(error)]
print(json.dumps(found))
"""


def test_an_extra_is_named_exactly_where_it_is_needed() -> None:
    """In a process of its own, in which none of their packages was imported before."""
    command = [sys.executable, "-c", WITHOUT_EXTRAS]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    for name, (extra, message) in json.loads(done.stdout).items():
        assert bool(extra) == bool(message), (name, extra, message)
        assert f"kreinlearn[{extra}]" in message or not extra, (name, message)
