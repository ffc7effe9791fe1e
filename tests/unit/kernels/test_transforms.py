"""From distances to similarities: every transformation against its definition, in double loops."""

from __future__ import annotations

import pickle
from math import exp, sqrt
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from kreinlearn import KreinRidge
from kreinlearn.kernels.dissimilarity import (
    AUTO_TRANSFORMS,
    LOCAL_WIDTH_RTOL,
    LOCAL_ZERO_RTOL,
    TRANSFORMS,
    blend_name,
    make_transform,
    median_distance,
    refit,
    shares_of,
)
from tests import oracles

RNG = np.random.default_rng(21)
OBJECTS = RNG.normal(size=(40, 3))
OBJECTS[[31, 32]] = OBJECTS[4]  # copies of a reference object
OBJECTS[9] = OBJECTS[7]  # a copy within the reference set
R, Z = np.arange(12), np.array([3, 9, 14, 20, 31, 38, 7, 0])
RANKED = tuple(name for name in TRANSFORMS if name.startswith("rank"))
NUMBERS = {"rank1": 1, "rank3": 3, "rank10": 10, "rank_inverse3": 3}
BOUNDED = tuple(name for name in TRANSFORMS if name not in ("squared", "linear", *RANKED))


def distances(A: Any, B: Any) -> Any:
    return np.sqrt(np.abs(A[:, None] - B[None])).sum(axis=-1) ** 2  # not Euclidean


D = distances(OBJECTS, OBJECTS)


# The definitions


def typical(D_RR: Any) -> float:
    """The median of the distances of pairs i < j, by sorting them."""
    n = len(D_RR)
    pairs = sorted(float(D_RR[i, j]) for i in range(n) for j in range(i + 1, n))
    N = len(pairs)
    middle = (pairs[(N - 1) // 2] + pairs[N // 2]) / 2 if N else 0.0
    if middle > 0:
        return middle
    positive = [d for d in pairs if d > 0]
    return sum(positive) / len(positive) if positive else 1.0


def width(to_reference: Any, D_RR: Any, k: int) -> float:
    """The distance to the k-th neighbour, one at distance zero not counted."""
    others = sorted(float(d) for d in to_reference)
    if others[0] <= LOCAL_ZERO_RTOL * typical(D_RR):
        others = others[1:]
    found = others[min(k, len(others)) - 1] if others else 0.0
    return max(found, LOCAL_WIDTH_RTOL * typical(D_RR))


def rank(d: float, to_reference: Any, D_RR: Any) -> float:
    return oracles.rank(d, to_reference, LOCAL_ZERO_RTOL * typical(D_RR))


def by_definition(name: str, D_xz: Any, D_xr: Any, D_zr: Any, D_rr: Any) -> Any:
    """k(x, z), entry by entry."""
    K, n, s = np.empty(D_xz.shape), len(D_rr), typical(D_rr)
    p = 2 if name == "squared" else 1
    c = sum(float(D_rr[r, t]) ** p for r in range(n) for t in range(n)) / n**2
    for i in range(len(D_xz)):
        for j in range(D_xz.shape[1]):
            d = float(D_xz[i, j])
            if name in ("squared", "linear"):
                a_x = sum(float(D_xr[i, r]) ** p for r in range(n)) / n
                a_z = sum(float(D_zr[j, r]) ** p for r in range(n)) / n
                K[i, j] = -0.5 * (d**p - a_x - a_z + c)
            elif name == "inverse":
                K[i, j] = 1 / (1 + d / s)
            elif name == "gauss":
                K[i, j] = exp(-((d / s) ** 2))
            elif name.startswith("rank"):
                u = sqrt(rank(d, D_xr[i], D_rr) * rank(d, D_zr[j], D_rr)) / NUMBERS[name]
                K[i, j] = 1 / (1 + u) if name.startswith("rank_inverse") else exp(-u)
            elif name.startswith("local"):
                k = int(name[-1])
                square = (d / width(D_xr[i], D_rr, k)) * (d / width(D_zr[j], D_rr, k))
                if name.startswith("local_inverse"):
                    K[i, j] = 1 / (1 + sqrt(square))
                else:
                    K[i, j] = exp(-sqrt(square) if "exp" in name else -square)
            else:
                K[i, j] = exp(-d / (s if name == "exp" else 0.3 * s))
    return K


def computed(name: str, D: Any, R: Any = R, Z: Any = Z) -> tuple[Any, Any]:
    """Similarities of all objects to Z, and of all to themselves."""
    transform = TRANSFORMS[name](D[np.ix_(R, R)])
    assert transform.n_reference == len(R)
    a = transform.offsets(D[:, np.concatenate([R, Z])])
    assert len(a) == len(D)
    assert a.ndim == (2 if name in NUMBERS else 1)
    return transform.similarity(D[:, Z], a, a[Z]), transform.diagonal(a)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_every_entry_is_that_of_the_definition(name: str) -> None:
    """Of reference objects, copies of them and new objects alike."""
    K, diagonal = computed(name, D)
    D_R, D_RR = D[:, R], D[np.ix_(R, R)]
    assert_allclose(K, by_definition(name, D[:, Z], D_R, D_R[Z], D_RR), rtol=1e-12, atol=1e-12)
    own = [by_definition(name, D[i : i + 1, i : i + 1], D_R[[i]], D_R[[i]], D_RR) for i in R]
    assert_allclose(diagonal[R], np.ravel(own), rtol=1e-12, atol=1e-12)


def test_the_candidates_of_auto_are_known() -> None:
    assert set(AUTO_TRANSFORMS) <= set(TRANSFORMS)
    assert len(set(AUTO_TRANSFORMS)) == len(AUTO_TRANSFORMS)
    assert AUTO_TRANSFORMS[0] == "squared"


@pytest.mark.parametrize("name", TRANSFORMS)
def test_alike_objects_have_the_same_similarities(name: str) -> None:
    """Similarities are a function of the object: the reference object and its copies agree."""
    K, diagonal = computed(name, D)
    for copy, of in ((31, 4), (32, 4), (9, 7)):
        assert_array_equal(D[copy], D[of])
        assert_array_equal(K[copy], K[of])
        assert diagonal[copy] == diagonal[of]


@pytest.mark.parametrize("name", TRANSFORMS)
def test_the_order_of_the_reference_set_does_not_matter(name: str) -> None:
    shuffled = RNG.permutation(R)
    assert_allclose(computed(name, D, R=shuffled)[0], computed(name, D)[0], rtol=1e-12, atol=1e-12)


def test_one_zero_is_no_neighbour_and_the_second_is() -> None:
    """Object 0 has a copy within the reference set, object 3 lies apart, 4 and 5 are new."""
    points = np.array([0.0, 0.0, 1.0, 3.0, 3.0, 3.5])
    D = np.abs(points[:, None] - points)
    R = np.arange(4)
    least = LOCAL_WIDTH_RTOL * 1.5  # pairs 0, 1, 1, 2, 3, 3: the median is 1.5
    expected = {1: [least, least, 1, 2, 2, 0.5], 3: [3, 3, 2, 3, 3, 3.5]}
    for k, widths in expected.items():
        transform = TRANSFORMS[f"local{k}"](D[np.ix_(R, R)])
        assert_allclose(transform.offsets(D[:, R]), widths, rtol=1e-12)


@pytest.mark.parametrize("share", [0.5, 2.0])
def test_distances_up_to_rounding_are_zero(share: float) -> None:
    """A self-distance within LOCAL_ZERO_RTOL of the median is dropped, no other."""
    D_RR = D[np.ix_(R, R)]
    row = D[3, R].copy()
    row[3] = share * LOCAL_ZERO_RTOL * typical(D_RR)
    got = TRANSFORMS["local1"](D_RR).offsets(row[None])[0]
    nearest = np.sort(D[3, R])[1]
    assert got == (nearest if share < 1 else row[3])


@pytest.mark.parametrize("n", [1, 2, 3, 7, 8])
def test_fewer_reference_objects_than_neighbours(n: int) -> None:
    """The farthest there is; a reference set of one has no other object: the least width."""
    few, D_RR = R[:n], D[:n, :n]
    offsets = TRANSFORMS["local7"](D_RR).offsets(D[:, few])
    assert_allclose(offsets, [width(row[few], D_RR, 7) for row in D], rtol=1e-12)
    if 1 < n < 8:
        assert_array_equal(offsets, D[:, few].max(axis=1))


# Scale


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("exponent", [-440, -3, 1, 440, 475])
def test_a_power_of_two_changes_no_bit(exponent: int, name: str) -> None:
    c = 2.0**exponent
    factor = {"squared": c * c, "linear": c}.get(name, 1.0)
    for got, expected in zip(computed(name, c * D), computed(name, D), strict=True):
        assert_array_equal(got, factor * expected)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_any_unit_of_the_distances_will_do(name: str) -> None:
    K, _ = computed(name, D)
    scaled, _ = computed(name, 3.7e5 * D)
    factor = {"squared": 3.7e5**2, "linear": 3.7e5}.get(name, 1.0)
    assert_allclose(scaled / factor, K, rtol=1e-11, atol=1e-12 * np.abs(K).max())


@pytest.mark.parametrize("name", BOUNDED)
def test_an_object_far_from_all_is_like_none(name: str) -> None:
    """Nothing overflows: the reference set is small, the new object as far as numbers go."""
    D_RR = 2.0**-60 * D[np.ix_(R, R)]
    transform = TRANSFORMS[name](D_RR)
    far = np.full((1, len(R)), 2.0**480)
    a = transform.offsets(D_RR)
    K = transform.similarity(far, np.full(1, a.min()), a)
    assert_allclose(K, 0.0, atol=1e-20)


# Distances that are all alike


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("n", [1, 2, 5])
def test_distances_that_are_all_zero(n: int, name: str) -> None:
    """Nothing is divided by zero, and a new object has a similarity."""
    D = np.zeros((n + 1, n))
    D[n] = 2.0
    transform = TRANSFORMS[name](D[:n])
    a = transform.offsets(D)
    K = transform.similarity(D, a, a[:n])
    assert_allclose(K, by_definition(name, D, D, D[:n], D[:n]), rtol=1e-12, atol=1e-12)
    assert_array_equal(K[:n], 0.0 if name in ("squared", "linear") else 1.0)


def test_the_median_distance() -> None:
    def of(*pairs: float) -> float:
        """Of a matrix with these distances above its diagonal."""
        n = round((1 + (1 + 8 * len(pairs)) ** 0.5) / 2)
        D_RR = np.zeros((n, n))
        D_RR[np.triu_indices(n, 1)] = pairs
        D_RR += D_RR.T
        assert median_distance(D_RR) == typical(D_RR)
        return median_distance(D_RR)

    assert of(3.0, 1.0, 2.0) == 2.0
    assert of(3.0, 1.0, 2.0, 7.0, 9.0, 8.0) == 5.0
    assert of(0.0, 0.0, 6.0) == 6.0
    assert of(0.0, 0.0, 0.0, 0.0, 6.0, 2.0) == 4.0
    assert of(0.0, 0.0, 0.0) == 1.0
    assert of() == 1.0


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_distances_out_of_range_are_refused(scale: float, name: str) -> None:
    with pytest.raises(ValueError, match="out of floating range"):
        TRANSFORMS[name](scale * D[np.ix_(R, R)])


# Blocks


@pytest.mark.parametrize("name", TRANSFORMS)
def test_distances_are_left_as_they_are(name: str) -> None:
    before = D.copy()
    K, _ = computed(name, D)
    assert_array_equal(D, before)
    assert not np.shares_memory(K, D)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_rows_do_not_depend_on_their_block(name: str) -> None:
    transform = TRANSFORMS[name](D[np.ix_(R, R)])
    everything, a_Z = transform.offsets(D), transform.offsets(D[Z])
    K = transform.similarity(D[:, Z], everything, a_Z)
    for rows in (slice(0, 1), slice(5, 17)):
        a = transform.offsets(D[rows])
        assert_array_equal(transform.similarity(D[rows][:, Z], a, a_Z), K[rows])


@pytest.mark.parametrize("name", TRANSFORMS)
def test_other_types_of_distances(name: str) -> None:
    """A new object's distances may be whole numbers; those of the model are double."""
    whole = np.round(10 * D)
    transform = TRANSFORMS[name](whole[np.ix_(R, R)])
    a_Z = transform.offsets(whole[Z])
    given = whole.astype(np.int64)
    K = transform.similarity(given[:, Z], transform.offsets(given), a_Z)
    assert np.issubdtype(K.dtype, np.floating)
    expected = computed(name, whole)[0]
    assert_allclose(K, expected, rtol=1e-12, atol=1e-12 * np.abs(expected).max())


def test_squares_are_centred_as_written() -> None:
    """Bit for bit, whatever is done in place."""
    transform = TRANSFORMS["squared"](D[np.ix_(R, R)])
    a, a_Z = transform.offsets(D), transform.offsets(D[Z])
    expected = -0.5 * (np.square(D[:, Z]) - a[:, None] - a_Z + transform.c)
    assert_array_equal(transform.similarity(D[:, Z], a, a_Z), expected)
    squares = np.square(D[np.ix_(R, R)])
    rounding = squares.size * np.finfo(np.float64).eps
    assert transform.c == pytest.approx(squares.mean(), rel=rounding)
    assert_allclose(transform.offsets(D), np.square(D[:, R]).mean(axis=1), rtol=rounding)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_transformation_is_data(name: str) -> None:
    transform = TRANSFORMS[name](D[np.ix_(R, R)])
    assert pickle.loads(pickle.dumps(transform)) == transform
    assert TRANSFORMS[name](D[np.ix_(R, R)]) == transform


# Maps made anew


@pytest.mark.parametrize("name", TRANSFORMS)
def test_refit_is_the_definition_on_the_kept_objects(name: str) -> None:
    """Columns in any order; reference set and landmarks overlap, neither holds the other."""
    columns = np.array([8, 30, 2, 31, 4, 17, 25, 39, 7, 9])  # rows of the evaluated columns
    reference = np.array([0, 2, 3, 4, 7, 8, 9])
    kept = np.array([9, 0, 3, 5, 6])
    raw = D[:, columns].copy()
    C, K_ZZ = refit(raw, kept, reference, columns, TRANSFORMS[name])
    r, z = columns[reference], columns[kept]
    expected = by_definition(name, D[:, z], D[:, r], D[np.ix_(z, r)], D[np.ix_(r, r)])
    assert_allclose(C, expected, rtol=1e-12, atol=1e-12)
    assert_allclose(K_ZZ, expected[z], rtol=1e-12, atol=1e-12)
    assert_array_equal(K_ZZ, K_ZZ.T)
    assert_array_equal(raw, D[:, columns])


@pytest.mark.parametrize("name", TRANSFORMS)
def test_what_is_left_out_has_no_part_in_a_refit(name: str) -> None:
    """Other distances to the columns left out: the same similarities, bit for bit."""
    columns, kept = np.arange(20), np.arange(0, 20, 2)
    raw = D[:, columns]
    wild = raw.copy()
    wild[:, 1::2] = RNG.uniform(0, 100, size=(40, 10))
    for got, expected in zip(
        refit(wild, kept, kept, columns, TRANSFORMS[name]),
        refit(raw, kept, kept, columns, TRANSFORMS[name]),
        strict=True,
    ):
        assert_array_equal(got, expected)


def test_a_blend_is_the_mean_of_its_parts_on_one_scale() -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(40, 2))
    D = np.abs(x[:, None] - x).sum(axis=2)
    names = ["local3", "squared", "rank3", "exp"]
    blend = make_transform(" + ".join(names), D[:30, :30])
    a = blend.offsets(D)
    found = blend.similarity(D[:, :30], a, a[:30])
    expected, own = np.zeros((40, 30)), np.zeros(40)
    for name in names:
        part = TRANSFORMS[name](D[:30, :30])
        b = part.offsets(D)
        size = np.abs(part.diagonal(b[:30])).mean()
        expected += part.similarity(D[:, :30], b, b[:30]) / size / len(names)
        own += part.diagonal(b) / size / len(names)
    np.testing.assert_allclose(found, expected, atol=16 * np.finfo(float).eps)
    np.testing.assert_allclose(blend.diagonal(a), own, atol=16 * np.finfo(float).eps)
    assert make_transform("exp", D) == TRANSFORMS["exp"](D)


def test_a_blend_may_have_weights() -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(40, 2))
    D = np.abs(x[:, None] - x).sum(axis=2)
    blend = make_transform("3 squared + exp", D[:30, :30])
    a = blend.offsets(D)
    squared, exponential = (TRANSFORMS[name](D[:30, :30]) for name in ("squared", "exp"))
    b = squared.offsets(D)
    size = np.abs(squared.diagonal(b[:30])).mean()
    expected = 0.75 * squared.similarity(D[:, :30], b, b[:30]) / size
    expected += 0.25 * exponential.similarity(D[:, :30], b, b[:30])
    np.testing.assert_allclose(blend.similarity(D[:, :30], a, a[:30]), expected, rtol=1e-12)
    equal, doubled = (make_transform(name, D) for name in ("exp + rank3", "2 exp + 2 rank3"))
    K, again = (one.similarity(D, *2 * [one.offsets(D)]) for one in (equal, doubled))
    assert_array_equal(K, again)


@pytest.mark.parametrize(
    ("name", "shares"),
    [
        ("exp", {"exp": 1.0}),
        ("exp + rank3", {"exp": 0.5, "rank3": 0.5}),
        ("0.7 exp + 0.3 rank3", {"exp": 0.7, "rank3": 0.3}),
        ("3 exp + rank3", {"exp": 0.75, "rank3": 0.25}),
        ("1e-3 exp + 3e-3 local_exp3", {"exp": 0.25, "local_exp3": 0.75}),
    ],
)
def test_shares_in_a_name(name: str, shares: dict[str, float]) -> None:
    assert shares_of(name) == pytest.approx(shares, rel=1e-15)
    assert list(shares_of(name)) == list(shares)


def test_a_name_of_a_blend_has_two_digits_and_the_largest_share_first() -> None:
    name = blend_name({"exp": 0.123456, "rank3": 0.8, "squared": 0.0765})
    assert name == "0.8 rank3 + 0.12 exp + 0.076 squared"
    assert shares_of(name)["exp"] == pytest.approx(0.12 / 0.996)
    assert blend_name({"exp": 0.4}) == "exp"


WRONG_NAMES = [
    *(
        "0.7 exp + 0.3 nonsense",
        "exp + exp",
        "0 exp + rank3",
        "-1 exp + 2 rank3",
        "inf exp + rank3",
    ),
    *("nan exp + rank3", "much exp + rank3", "exp +", " + ", ""),
]


@pytest.mark.parametrize("name", WRONG_NAMES)
def test_names_that_are_no_similarity_are_refused_in_words(name: str) -> None:
    words = r"The 'similarity' parameter of KreinRidge must be .* Got .* instead"
    with pytest.raises(ValueError, match=words):
        KreinRidge("precomputed_dissimilarity", similarity=name).fit(D, D[0])


def test_a_blend_can_be_asked_for_by_its_name() -> None:
    y = OBJECTS[:, 0]
    given = {"kernel": "precomputed_dissimilarity", "landmarks": None}
    for name in ("0.7 exp + 0.3 rank3", "exp + rank3"):
        model = KreinRidge(similarity=name, **given).fit(D, y)
        assert model.similarity_ == name
        assert model.predict(D).shape == (40,)
    found = KreinRidge(**given).fit(D, y)
    again = KreinRidge(similarity=found.similarity_, **given).fit(D, y)
    assert " + " in found.similarity_
    assert_allclose(again.predict(D), found.predict(D), rtol=1e-7)
    assert again.cv_loss_ == pytest.approx(found.cv_loss_, rel=1e-9)
