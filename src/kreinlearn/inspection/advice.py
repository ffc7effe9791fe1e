"""One paragraph in plain words: what the findings mean and what to do."""

from __future__ import annotations

from collections.abc import Iterator

from kreinlearn.inspection.findings import SMALL, Inspection, percent

EXACT_LEARNERS = 1000  # objects up to which a learner takes all as landmarks


def advice(found: Inspection) -> str:
    parts = (_repairs, _definiteness, _labels, _size)
    return " ".join(sentence for part in parts for sentence in part(found))


def _repairs(found: Inspection) -> Iterator[str]:
    if found.drift:
        yield (
            "The function gives another value when it is called again: fix that first, "
            "no result will repeat."
        )
    if found.asymmetry:
        yield (
            "It is not symmetric. The estimators average k(x, z) and k(z, x); if the two "
            "directions mean different things, decide for one of them yourself."
        )
    if found.self_dissimilarity:
        yield "Objects differ from themselves: subtract that, or pass a similarity instead."
    if found.duplicates:
        yield "Some objects cannot be told apart: drop repeated ones before folds are cut."


def _definiteness(found: Inspection) -> Iterator[str]:
    iota = found.indefiniteness[found.n_sampled]
    if found.positive_definite:
        yield "It is positive semi-definite on these objects, so any kernel method will do"
        yield "(a larger sample may show negative eigenvalues)." if not found.exact else "as it is."
        return
    if iota < SMALL:
        yield (
            "It is indefinite by next to nothing, and yet such a small part can hold all there is "
            "to learn: keep it, and let the two penalties of the Krein learners decide."
        )
    else:
        yield (
            f"It is no positive definite kernel: {iota:.0%} of its spectrum is negative. "
            "Use KreinRidgeClassifier or KreinSVC (KreinRidge for numbers), which keep the "
            "negative part and penalise it apart."
        )
    if found.triangle_violations:
        yield (
            f"{percent(found.triangle_violations)} of triples break the triangle inequality: "
            "methods that rely on a metric (ball trees, some clusterings) do not apply."
        )
    elif found.triangle_violations == 0:
        yield "No triple that was looked at breaks the triangle inequality."


def _labels(found: Inspection) -> Iterator[str]:
    if found.label_signal is None or found.positive_definite:
        return
    chance = found.indefiniteness[found.n_sampled]
    if found.label_signal > 0.5 * chance:
        yield (
            "The labels use the negative part: cutting it off (clip), or methods that fail on it, "
            "would lose signal."
        )
    else:
        yield "The labels hardly use the negative part: it looks like noise; clipping costs little."


def _size(found: Inspection) -> Iterator[str]:
    if found.n_objects <= EXACT_LEARNERS:
        yield "There are few objects: the learners will use all of them as landmarks."
    elif found.n_landmarks is None:
        yield (
            "Its spectrum falls too slowly for this sample to say how many landmarks are enough: "
            "begin with the default and raise n_landmarks while the error still falls."
        )
    else:
        yield f"About {found.n_landmarks:,} landmarks approximate it to a few percent."
