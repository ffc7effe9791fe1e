"""One paragraph in plain words: what the findings of an inspection mean and what to do."""

from __future__ import annotations

from collections.abc import Iterator

from kreinlearn.inspection.measures import ROUNDING, SHUFFLES
from kreinlearn.inspection.result import Inspection, percent

SMALL = 1e-3  # an indefiniteness below this is nearly nothing
EXACT_LEARNERS = 1000  # objects up to which a learner takes all of them as landmarks
# What to pass if a similarity turns out to be a dissimilarity.
AS_DISSIMILARITY = {
    "matrix": 'kernel="precomputed_dissimilarity"',
    "function of pairs": "kernel=dissimilarity(pairwise(f))",
    "function of blocks": "kernel=dissimilarity(f)",
}
# What estimators do with an asymmetric similarity.
ROWS = "rows use k(x, z) with z the landmark"
IF_ASYMMETRIC = {
    "matrix": "The matrix is averaged with its transpose",
    "function of pairs": "Each pair of landmarks is evaluated in one direction and mirrored, other "
    + ROWS,
    "function of blocks": f"Values among landmarks are averaged with their transpose, other {ROWS}",
    "kernel": f"Values among landmarks are made symmetric, other {ROWS}",
}


def advice(findings: Inspection) -> str:
    """The advice that goes with these findings."""
    return " ".join(_sentences(findings))


def _sentences(findings: Inspection) -> Iterator[str]:
    if findings.looks_like_dissimilarity:
        yield (
            "This looks like a dissimilarity: objects have 0 with themselves and no value is "
            f"negative. If it is one pass {AS_DISSIMILARITY[findings.given]}: what is said here "
            "takes it for a similarity and does not hold. If it is a similarity all the same:"
        )
    if findings.drift:
        yield (
            "The function gives another value when it is called again: fix that first, "
            "no result will repeat."
        )
    if findings.asymmetry:
        yield (
            f"It is not symmetric. {IF_ASYMMETRIC[findings.given]}; if the two directions mean "
            "different things, decide for one of them yourself."
        )
    if findings.self_dissimilarity:
        yield (
            "Objects differ from themselves, which the estimators refuse: subtract that, or pass "
            "a similarity instead. Here d(x, x) counts as zero."
        )
    if findings.n_sampled == 1:
        yield "There is one object and none to compare it with: there is nothing to learn from."
    elif findings.indistinct:
        yield "No two of these objects can be told apart by it: there is nothing to learn from."
    else:
        if findings.duplicates:
            yield (
                f"{findings.duplicates:,} pairs of objects cannot be told apart by it. If they are "
                "copies, drop the repeated ones before folds are cut; if the objects differ, it "
                "does not see the difference."
            )
        yield from _definiteness(findings)
        yield from _labels(findings)
        yield from _size(findings)


def _definiteness(findings: Inspection) -> Iterator[str]:
    iota = findings.indefiniteness[findings.n_sampled]
    if findings.positive_definite:
        larger = "(a larger sample may show negative eigenvalues)."
        yield "It is positive semi-definite on these objects, so any kernel method will do"
        yield "as it is." if findings.exact else larger
        return
    if iota < SMALL:
        yield (
            "Its negative part is tiny, and yet such a small part may contain all there is to "
            "learn: keep it, and let the two penalties of the Krein learners decide."
        )
    else:
        yield (
            f"It is no positive definite kernel: {iota:.0%} of its spectrum is negative. "
            "Use KreinClassifier (KreinRegressor for numbers) or one of the other Krein learners, "
            "which keep the negative part and penalise it apart."
        )
    if findings.triangle_violations:
        yield (
            f"{percent(findings.triangle_violations)} of triples break the triangle inequality: "
            "methods that rely on a metric (ball trees, some clusterings) do not apply."
        )
    elif findings.triangle_violations == 0:
        yield "No triple that was looked at breaks the triangle inequality."


def _labels(findings: Inspection) -> Iterator[str]:
    if findings.label_excess is None or findings.positive_definite:
        return
    if findings.label_excess > 1 + ROUNDING:
        yield (
            f"The labels use the negative part, more than any of {SHUFFLES} shuffles of them does: "
            "cutting it off (clip), or methods that fail on it, would lose signal."
        )
    else:
        yield (
            "The labels use the negative part no more than shuffled ones may: it looks like noise, "
            "for which the Krein learners find a large penalty. To cut it off (clip) would cost "
            "little here."
        )


def _size(findings: Inspection) -> Iterator[str]:
    if findings.n_objects <= EXACT_LEARNERS:
        yield "There are few objects: the learners will use all of them as landmarks."
    elif findings.n_landmarks is None:
        yield (
            "Its spectrum falls too slowly for this sample to say how many landmarks are enough: "
            "begin with the default and raise the number of landmarks while the error still falls."
        )
    else:
        yield f"About {findings.n_landmarks:,} landmarks approximate it to a few percent."
