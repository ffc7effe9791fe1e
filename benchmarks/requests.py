"""One object at a time: how long a request to a fitted model takes, alone and beside others.

python -m benchmarks.requests. Medians of interleaved rounds of many requests; wall milliseconds
are compared with the limits, and CPU milliseconds stand beside them.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.svm import SVC

from benchmarks import tables, timing
from benchmarks.timing import Row, Timing, interleaved
from kreinlearn import KreinRidgeClassifier

LIMITS = {"string": 0.45, "vector": 0.35}  # milliseconds
THREADS = (2, 4)
REQUESTS = 400  # in a round
LETTERS = list("abcdefgh")


class Case(NamedTuple):
    """A fitted model, and the object that it is asked about."""

    what: str
    model: Any
    one: Any

    def ask(self, count: int) -> None:
        for _ in range(count):
            self.model.predict(self.one)

    def ask_in_threads(self, threads: int) -> None:
        """The same number of requests, shared by several threads."""
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(self.ask, [REQUESTS // threads] * threads))


def cases(m_strings: int = 600, m_vectors: int = 1000) -> dict[str, Case]:
    """A model of strings, one of vectors, and scikit-learn's machine of the same vectors."""
    rng = np.random.default_rng(0)
    spelled = ("".join(rng.choice(LETTERS, rng.integers(4, 12))) for _ in range(3 * m_strings))
    words = list(dict.fromkeys(spelled))
    X = rng.standard_normal((3 * m_vectors, 10))
    y = X[:, 0] > 0
    strings = KreinRidgeClassifier("levenshtein", landmarks=m_strings, random_state=0)
    vectors = KreinRidgeClassifier("gaussian", landmarks=m_vectors, random_state=0)
    strings.fit(words, [len(word) > 7 for word in words])
    machine = SVC().fit(X, y)
    return {
        "string": Case(f"one string, {m_strings} landmarks", strings, words[:1]),
        "vector": Case(f"one vector of 10, {m_vectors} landmarks", vectors.fit(X, y), X[:1]),
        "SVC": Case(f"scikit-learn's SVC, {len(machine.support_)} vectors", machine, X[:1]),
    }


def one_object(repetitions: int, m_strings: int = 600, m_vectors: int = 1000) -> list[Row]:
    """How long one request takes, and how many are answered when several threads ask."""
    asked = cases(m_strings, m_vectors)
    works: dict[str, Callable[[], object]] = {}
    for name, case in asked.items():
        works[name] = partial(case.ask, REQUESTS)
        for threads in THREADS:
            works[f"{name}, {threads} threads"] = partial(case.ask_in_threads, threads)
    t = interleaved(works, 3 * repetitions)
    peer = asked["SVC"]
    rows = [Row(f"predict of {peer.what}", in_words(t["SVC"]), note=at_once(t, "SVC"))]
    for name, limit in LIMITS.items():
        wall = milliseconds(t[name].wall)
        what = f"predict of {asked[name].what}"
        rows.append(Row(what, in_words(t[name]), f"<= {limit} ms", wall <= limit))
        least = min(t[name].wall / t[f"{name}, {threads} threads"].wall for threads in THREADS)
        rows.append(
            Row(f"{what}: requests a second of 2 and 4 threads over those of one",
                at_once(t, name), ">= 1", least >= 1)
        )  # fmt: skip
    return rows


def milliseconds(seconds: float) -> float:
    """Of one request, from the seconds of a round."""
    return 1000 * seconds / REQUESTS


def in_words(t: Timing) -> str:
    return f"{milliseconds(t.wall):.2f} ms ({milliseconds(t.cpu):.2f} ms CPU)"


def at_once(t: dict[str, Timing], name: str) -> str:
    """How many times as many requests are answered when several threads ask at once."""
    gains = [t[name].wall / t[f"{name}, {threads} threads"].wall for threads in THREADS]
    return ", ".join(
        f"{gain:.2f} x with {n} threads" for n, gain in zip(THREADS, gains, strict=True)
    )


if __name__ == "__main__":
    timing.table_of(one_object(7), "Requests for one object").show(tables.console())
