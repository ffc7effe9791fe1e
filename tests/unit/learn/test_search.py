"""The search for penalties on functions whose minimum is known."""

from __future__ import annotations

import numpy as np
import pytest

from kreinlearn.learn.search import (
    COARSE,
    ENOUGH_ROWS,
    HIGHEST,
    LOWEST,
    RADIUS,
    TIE_RTOL,
    MeanLoss,
    Unknowns,
    given,
    one_penalty,
    tune,
    tune_apart,
)

TWO = Unknowns((None, None))
MOST_TRIALS = 60


class Counted:
    """A loss of values and its gradient in their logarithms, and the values it was asked for."""

    def __init__(self, loss, gradient):
        self.loss, self.gradient, self.asked = loss, gradient, []

    def __call__(self, values):
        self.asked.append(values.copy())
        x = np.log(values)
        return self.loss(x), np.asarray(self.gradient(x))


def bowl(target, curvature, floor=0.2):
    """floor + (x - t)' A (x - t) / 2 in logarithms of values."""
    t, A = np.log(target), np.asarray(curvature)
    return Counted(lambda x: floor + 0.5 * (x - t) @ A @ (x - t), lambda x: A @ (x - t))


def flat_in(j, target=1e-2, sensitivity=0.1):
    """A minimum in the other penalty, and none in penalty j."""
    other = 1 - j

    def gradient(x):
        slope = np.zeros(2)
        slope[other] = sensitivity * (x[other] - np.log(target))
        return slope

    return Counted(lambda x: 1 + sensitivity * (x[other] - np.log(target)) ** 2 / 2, gradient)


# The minimum

TARGETS = [(1e-2, 1e-2), (1e-6, 1e3), (3e-1, 1e-8), (2e-5, 7e-5)]
CURVATURES = [
    np.diag([0.02, 0.02]),
    np.array([[0.02, 0.015], [0.015, 0.02]]),
    np.diag([0.3, 0.004]),
]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("curvature", CURVATURES)
def test_the_minimum_of_a_bowl(target, curvature):
    loss = bowl(target, curvature)
    tuned = tune(loss, 1.0, TWO)
    assert tuned.loss <= 0.2 * (1 + 3 * TIE_RTOL)
    assert tuned.loss == pytest.approx(loss.loss(np.log(tuned.values)), rel=1e-12)
    assert len(loss.asked) <= MOST_TRIALS


def test_every_trial_is_told():
    loss = bowl(TARGETS[1], CURVATURES[0])
    tuned = tune(loss, 1.0, TWO)
    np.testing.assert_allclose(tuned.trials[:, :2], loss.asked, rtol=1e-14)
    expected = [loss.loss(np.log(values)) for values in loss.asked]
    np.testing.assert_allclose(tuned.trials[:, 2], expected, rtol=1e-12)
    assert tuned.loss <= tuned.trials[:, 2].min() * (1 + TIE_RTOL)
    assert tuned.values.tolist() in tuned.trials[:, :2].tolist()


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e9])
def test_trials_stay_within_bounds_of_the_scale(scale):
    for target in ((1e-30, 1e30), (1e30, 1e-30)):
        loss = bowl(scale * np.array(target), np.diag([0.02, 0.03]))
        tuned = tune(loss, scale, TWO)
        asked = np.array(loss.asked)
        low, high = LOWEST * scale, HIGHEST * scale
        assert low * (1 - 1e-12) <= asked.min()
        assert asked.max() <= high * (1 + 1e-12)
        expected = np.clip(scale * np.array(target), low, high)
        np.testing.assert_allclose(tuned.values, expected, rtol=1e-6)


def test_a_third_value_has_bounds_of_its_own():
    for target, expected in ((0.7, 0.7), (1e-3, RADIUS[0]), (1e3, RADIUS[1])):
        loss = bowl((1e-2, 1e-1, target), 0.02 * np.eye(3))
        tuned = tune(loss, 1.0, Unknowns((None, None, None)))
        assert tuned.values[2] == pytest.approx(expected, rel=0.15)
        assert len(loss.asked) <= 2 * MOST_TRIALS


def test_a_loss_of_zero_is_no_error():
    loss = Counted(lambda x: 0.0, np.zeros_like)
    tuned = tune(loss, 1.0, TWO)
    np.testing.assert_allclose(tuned.values, [HIGHEST, HIGHEST])
    assert tuned.loss < 1e-300


def test_the_unit_of_the_loss_does_not_matter():
    one = tune(bowl(TARGETS[1], CURVATURES[1]), 1.0, TWO)
    c = 2.0**60
    scaled = bowl(TARGETS[1], c * CURVATURES[1], floor=c * 0.2)
    other = tune(scaled, 1.0, TWO)
    np.testing.assert_allclose(other.values, one.values, rtol=1e-9)
    assert other.loss == pytest.approx(c * one.loss, rel=1e-12)


@pytest.mark.parametrize("c", [2.0**20, 2.0**-31, 3e7, 1.7e-5])
def test_the_unit_of_the_kernel_does_not_matter(c):
    target = np.array([3e-4, 20.0])
    one = tune(bowl(target, CURVATURES[1]), 1.0, TWO)
    other = tune(bowl(c * target, CURVATURES[1]), c, TWO)
    np.testing.assert_allclose(other.values, c * one.values, rtol=1e-8)
    np.testing.assert_allclose(other.trials[:, :2], c * one.trials[:, :2], rtol=1e-8)
    assert other.loss == pytest.approx(one.loss, rel=1e-12)


# What is fixed or tied


@pytest.mark.parametrize("fixed", [(0.0, None), (None, 0.0), (0.3, None), (None, 1e20)])
def test_a_given_value_stays(fixed):
    j = fixed.index(None)
    one = bowl((1e-3,), [[0.03]])

    def loss(values):
        assert values[1 - j] == fixed[1 - j]
        value, gradient = one(values[[j]])
        return value, np.insert(gradient, 1 - j, np.nan)  # of a value that is not free

    tuned = tune(loss, 1.0, Unknowns(fixed))
    assert tuned.values[1 - j] == fixed[1 - j]
    assert (tuned.trials[:, 1 - j] == fixed[1 - j]).all()
    assert tuned.loss <= 0.2 * (1 + 2 * TIE_RTOL)
    assert len(one.asked) <= MOST_TRIALS


def test_equal_penalties_move_together():
    """The minimum on the diagonal of a bowl that is steeper in lambda_plus."""
    loss = bowl((1e-4, 1.0), np.diag([0.03, 0.01]))
    tuned = tune(loss, 1.0, Unknowns((None, None), equal=True))
    assert tuned.values[0] == tuned.values[1]
    np.testing.assert_array_equal(tuned.trials[:, 0], tuned.trials[:, 1])
    best = 0.75 * np.log(1e-4)  # 0.03 (x - log 1e-4) + 0.01 x = 0
    expected = loss.loss(np.array([best, best]))
    assert tuned.loss <= expected * (1 + 2 * TIE_RTOL)
    assert len(loss.asked) <= MOST_TRIALS


def test_gradients_of_what_is_free():
    full = np.array([1.0, 10.0, 100.0])
    for fixed, equal, expected in (
        ((None, None, None), False, [1, 10, 100]),
        ((None, None, 1.0), True, [11]),
        ((None, None, None), True, [11, 100]),
        ((0.5, None, None), False, [10, 100]),
        ((None, 0.5, 1.0), False, [1]),
        ((0.5, 0.5, None), True, [100]),
    ):
        unknowns = Unknowns(fixed, equal)
        np.testing.assert_array_equal(unknowns.gradient(full), expected)
        assert len(unknowns.free) == len(expected)
    np.testing.assert_array_equal(full, [1, 10, 100])  # not changed in place


def test_values_of_what_is_free():
    x = np.log([3.0, 7.0])
    values = Unknowns((None, None, 0.5)).values(x)
    np.testing.assert_allclose(values, [3, 7, 0.5])
    np.testing.assert_allclose(Unknowns((None, None, None), equal=True).values(x), [3, 3, 7])
    np.testing.assert_allclose(Unknowns((0.0, None, None)).values(x), [0, 3, 7])
    np.testing.assert_allclose(Unknowns((0.1, 0.1), equal=True).values(x[:0]), [0.1, 0.1])


def test_what_is_given_needs_no_trial():
    tuned = given(Unknowns((0.0, 2.5, 1.0)))
    np.testing.assert_array_equal(tuned.values, [0, 2.5, 1])
    assert tuned.trials.shape == (0, 4)
    assert np.isnan(tuned.loss)


# Ties


@pytest.mark.parametrize("j", [0, 1])
def test_a_flat_direction_ends_at_the_largest_penalty(j):
    loss = flat_in(j)
    tuned = tune(loss, 2.0, TWO)
    assert tuned.values[j] == pytest.approx(2.0 * HIGHEST, rel=1e-12)
    assert tuned.loss <= 1 + 3 * TIE_RTOL
    assert abs(np.log(tuned.values[1 - j] / 1e-2)) < 0.1
    assert len(loss.asked) <= MOST_TRIALS


def test_a_loss_that_gets_flat_ends_at_the_largest_penalties():
    """Falling to its floor: everything far enough up is as good."""

    def falling(x):
        return 1 + np.exp(-x).sum()

    tuned = tune(Counted(falling, lambda x: -np.exp(-x)), 1.0, TWO)
    np.testing.assert_allclose(tuned.values, [HIGHEST, HIGHEST], rtol=1e-12)


@pytest.mark.parametrize("target", TARGETS)
def test_what_is_no_tie_stays_where_it_is(target):
    tuned = tune(bowl(target, CURVATURES[0]), 1.0, TWO)
    np.testing.assert_allclose(np.log10(tuned.values), np.log10(target), atol=0.1)


def test_equal_penalties_rise_as_one():
    tuned = tune(Counted(lambda x: 1.0, np.zeros_like), 1.0, Unknowns((None, None), equal=True))
    np.testing.assert_allclose(tuned.values, [HIGHEST, HIGHEST])


def test_a_third_value_is_no_penalty_to_be_raised():
    loss = bowl((1e-2, 1e-1, 0.7), np.diag([0.02, 0.02, 1e-9]))
    tuned = tune(loss, 1.0, Unknowns((None, None, None)))
    assert tuned.values[2] < RADIUS[1] / 2


# Local minima


def test_the_negative_part_switched_off_is_a_start_of_its_own():
    """A valley below the bound of lambda_minus: from there it goes down, from inside it does not.

    At the bound itself the loss is above that of the other valley: it is no tie.
    """
    top, valley = np.log(HIGHEST) - 2.5, np.log(1e-3)

    def wells(x):
        return np.exp(-((x[1] - valley) ** 2) / 5), np.exp(-((x[1] - top) ** 2) / 5)

    def loss(x):
        inside, high = wells(x)
        return 2 - 0.5 * inside - high + 0.02 * (x[0] - valley) ** 2

    def gradient(x):
        inside, high = wells(x)
        slope = 0.2 * inside * (x[1] - valley) + 0.4 * high * (x[1] - top)
        return [0.04 * (x[0] - valley), slope]

    tuned = tune(Counted(loss, gradient), 1.0, TWO)
    assert np.log(tuned.values[1]) == pytest.approx(top, abs=0.3)
    assert tuned.loss == pytest.approx(1.0, rel=1e-2)


# Other ways to begin and to end


def test_a_start_is_where_it_begins():
    loss = bowl((1e-2, 1.0), CURVATURES[0])
    tuned = tune(loss, 1.0, TWO, start=np.array([3e-2, 0.5]))
    np.testing.assert_allclose(loss.asked[0], [3e-2, 0.5])
    assert tuned.loss <= 0.2 * (1 + 3 * TIE_RTOL)
    assert len(loss.asked) < len(tune(bowl((1e-2, 1.0), CURVATURES[0]), 1.0, TWO).trials)


def test_a_start_beyond_the_bounds_is_moved_to_them():
    loss = bowl((1e-2, 1.0), CURVATURES[0])
    tune(loss, 1.0, TWO, start=np.array([1e-30, 1e30]))
    np.testing.assert_allclose(loss.asked[0], [LOWEST, HIGHEST])


def test_a_start_of_one_that_is_free():
    loss = Counted(lambda x: 1 + 0.05 * x[0] ** 2, lambda x: [0.1 * x[0], np.nan])
    tuned = tune(loss, 1.0, Unknowns((None, 0.5)), start=np.array([1e-2, 0.5]))
    np.testing.assert_allclose(loss.asked[0], [1e-2, 0.5])
    assert tuned.values[1] == 0.5


def test_coarse_trials_are_a_few_equal_penalties_and_one_switched_off():
    loss = bowl((2e-5, 1e3), CURVATURES[0])
    tuned = tune(loss, 3.0, TWO, coarse=True)
    expected = [[3 * share, 3 * share] for share in COARSE]
    np.testing.assert_allclose(tuned.trials[:4, :2], expected)
    best = tuned.trials[np.argmin(tuned.trials[:4, 2])]
    np.testing.assert_allclose(tuned.trials[4:, :2], [[best[0], 3 * HIGHEST]])
    np.testing.assert_array_equal(
        np.append(tuned.values, tuned.loss), tuned.trials[np.argmin(tuned.trials[:, 2])]
    )


# Folds of rows


def ridge_loss(seed, n=60, r=12):
    """Cross-validated squared error of random features, and its gradient, by numpy alone."""
    rng = np.random.default_rng(seed)
    Phi = rng.normal(size=(n, r)) * np.geomspace(1, 1e-3, r)
    S = rng.choice([-1.0, 1.0], r)
    y = Phi @ rng.normal(size=r) * rng.choice([0, 1, 30]) + rng.normal(size=n)
    folds = np.arange(n) % 5

    def objective(values):
        asked.append(values)
        loss, slope = 0.0, np.zeros(2)
        for k in range(5):
            F, F_v, t, t_v = Phi[folds != k], Phi[folds == k], y[folds != k], y[folds == k]
            penalty = len(F) * np.where(S > 0, *values)
            A = F.T @ F + np.diag(penalty)
            z = np.linalg.solve(A, F.T @ t)
            left = F_v @ z - t_v
            q = np.linalg.solve(A, 2 * F_v.T @ left)
            each = -q * penalty * z
            loss += left @ left / n
            slope += [each[S > 0].sum() / n, each[S < 0].sum() / n]
        return loss, slope

    asked = []
    return objective, asked, float(np.linalg.norm(Phi, 2) ** 2 / n)


@pytest.mark.parametrize("seed", range(8))
def test_the_loss_of_folds_is_as_small_as_on_a_grid_in_few_trials(seed):
    objective, asked, scale = ridge_loss(seed)
    tuned = tune(objective, scale, TWO)
    assert len(asked) <= MOST_TRIALS
    grid = scale * np.logspace(-8, 6, 8)
    best = min(objective(np.array([p, m]))[0] for p in grid for m in grid)
    assert tuned.loss <= 1.02 * best  # a search ends where the loss gets flat


class OneFold:
    """A bowl that is the loss of a single fold."""

    def __init__(self, target):
        self.bowl = bowl(target, np.diag([0.02, 0.02]))

    def __call__(self, values):
        return self.bowl(values)

    def per_fold(self, values):
        return np.array([self(values)[0]])


def test_one_fold_is_no_evidence_for_two_penalties():
    """Its fall has no standard error."""
    tuned = tune_apart(OneFold((1e-4, 1.0)), 1.0, TWO)
    assert not tuned.apart
    assert tuned.values[0] == tuned.values[1]
    np.testing.assert_allclose(np.log10(tuned.values), -2, atol=0.2)


def dip(target, width=2.0):
    """A loss that only near the target is less than far away: elsewhere no slope leads there."""
    t = np.log(target)

    def near(x):
        return np.exp(-np.sum((x - t) ** 2) / (2 * width**2))

    return Counted(lambda x: 1.5 - near(x), lambda x: near(x) * (x - t) / width**2)


@pytest.mark.parametrize("start", [LOWEST, 1e-7, 1e-6])
def test_a_start_at_hardly_any_penalty_is_not_all_that_is_tried(start):
    loss = dip((1e-3, 1e-3))
    found = tune(loss, 1.0, Unknowns((None, None), equal=True), start=np.full(2, start))
    np.testing.assert_allclose(np.log(found.values), np.log(1e-3), atol=0.1)


def test_another_start_is_trusted():
    loss = bowl((1e-2, 1e-2), np.diag([0.02, 0.02]))
    tune(loss, 1.0, TWO, start=np.full(2, 1e-2))
    np.testing.assert_allclose(loss.asked[0], 1e-2)
    assert not any(np.allclose(values, COARSE[0]) for values in loss.asked)


# More penalties than two: of several similarities and both signs

FOUR = Unknowns((None,) * 4, n_penalties=4)


def test_four_penalties_and_a_radius():
    target = (1e-4, 1e-1, 1e-2, 1e1, 0.7)
    loss = bowl(target, 0.02 * np.eye(5))
    tuned = tune(loss, 1.0, Unknowns((None,) * 5, n_penalties=4))
    assert tuned.loss <= 0.2 * (1 + 5 * TIE_RTOL)
    np.testing.assert_allclose(np.log10(tuned.values), np.log10(target), atol=0.15)
    assert len(loss.asked) <= 2 * MOST_TRIALS
    asked = np.array(loss.asked)
    assert RADIUS[0] * (1 - 1e-12) <= asked[:, 4].min()
    assert asked[:, 4].max() <= RADIUS[1] * (1 + 1e-12)


def test_coarse_trials_of_four_penalties():
    """Equal ones, then those of negative signature, which have odd numbers, switched off."""
    tuned = tune(bowl((1e-3, 1e5, 1e-3, 1e5), 0.02 * np.eye(4)), 3.0, FOUR, coarse=True)
    np.testing.assert_allclose(tuned.trials[:4, :4], [[3 * share] * 4 for share in COARSE])
    best = tuned.trials[np.argmin(tuned.trials[:4, 4]), 0]
    np.testing.assert_allclose(tuned.trials[4:, :4], [[best, 3 * HIGHEST, best, 3 * HIGHEST]])


def test_ties_of_four_penalties_end_at_the_largest():
    tuned = tune(Counted(lambda x: 1.0, np.zeros_like), 2.0, FOUR)
    np.testing.assert_allclose(tuned.values, 2 * HIGHEST, rtol=1e-12)


def test_values_and_gradients_of_four_penalties():
    full = np.array([1.0, 10.0, 100.0, 1000.0, 7.0])
    for fixed, equal, free, gradient, values in (
        ((None,) * 5, True, [0, 4], [1111, 7], [3, 3, 3, 3, 9]),
        ((None, 5.0, None, 6.0, 1.0), True, [0], [101], [3, 5, 3, 6, 1]),
        ((2.0, None, None, None, None), True, [1, 4], [1110, 7], [2, 3, 3, 3, 9]),
        ((None, 5.0, None, 6.0, 1.0), False, [0, 2], [1, 100], [3, 5, 9, 6, 1]),
    ):
        unknowns = Unknowns(fixed, equal, n_penalties=4)
        assert unknowns.free == free
        np.testing.assert_array_equal(unknowns.gradient(full), gradient)
        found = unknowns.values(np.log([3.0, 9.0])[: len(free)])
        np.testing.assert_allclose(found, values)


def test_what_is_left_of_penalties_that_need_no_values_of_their_own():
    equal, off = one_penalty(np.full(2, 0.3)), one_penalty(np.array([0.3, 9.0]))
    assert (equal.fixed, equal.equal) == ((None, None), True)
    assert (off.fixed, off.equal) == ((None, 9.0), False)
    equal, off = one_penalty(np.full(4, 0.3), 4), one_penalty(np.array([0.3, 9.0, 0.3, 9.0]), 4)
    assert (equal.fixed, equal.equal, equal.free) == ((None,) * 4, True, [0])
    assert (off.fixed, off.equal, off.free) == ((None, 9.0, None, 9.0), True, [0])


# Folds that are asked for their loss


class DiagonalFold:
    """Ridge of orthogonal features in closed form: no matrix is factored.

    Feature i has length d_i, product b_i with the targets, and penalty values[groups_i].
    """

    def __init__(self, d, b, b_valid, groups, n_valid):
        self.d, self.b, self.b_valid, self.groups, self.n_valid = d, b, b_valid, groups, n_valid

    def loss_and_gradient(self, values):
        penalty = values[self.groups]
        z = self.b / (self.d + penalty)
        slope = 2 * (self.d * z - self.b_valid) * -z * penalty / (self.d + penalty)
        loss = self.d @ z**2 - 2 * self.b_valid @ z + 50.0
        return float(loss), np.bincount(self.groups, slope, len(values))


def diagonal_folds(p, seed=0):
    rng = np.random.default_rng(seed)
    d, truth, groups = np.geomspace(1, 1e-2, 24), rng.normal(size=24), np.arange(24) % p
    return [
        DiagonalFold(d, d * truth + rng.normal(0, 0.2, 24), d * truth + rng.normal(0, 0.2, 24),
                     groups, n_valid)
        for n_valid in (10.0, 30.0, 20.0)
    ]  # fmt: skip


@pytest.mark.parametrize("p", [2, 4])
def test_the_mean_loss_of_anything_that_answers(p):
    folds = diagonal_folds(p)
    objective, values = MeanLoss(folds), np.geomspace(0.01, 0.3, p)
    loss, gradient = objective(values)
    each = [fold.loss_and_gradient(values) for fold in folds]
    assert loss == pytest.approx(sum(one for one, _ in each) / 60)
    np.testing.assert_allclose(gradient, np.sum([slope for _, slope in each], axis=0) / 60)
    np.testing.assert_allclose(
        objective.per_fold(values), [each[0][0] / 10, each[1][0] / 30, each[2][0] / 20]
    )
    for j, step in enumerate(1e-5 * np.eye(p)):
        ends = [objective(values * np.exp(sign * step))[0] for sign in (1, -1)]
        assert gradient[j] == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-6)


@pytest.mark.parametrize("p", [2, 4])
def test_a_search_that_only_asks_for_loss_and_gradient(p):
    objective = MeanLoss(diagonal_folds(p))
    unknowns = Unknowns((None,) * p, n_penalties=p)
    tuned = tune(objective, 1.0, unknowns)
    random = np.random.default_rng(0).uniform(-8, 6, (300, p))
    assert tuned.loss <= 1.001 * min(objective(10.0**x)[0] for x in random)
    apart = tune_apart(objective, 1.0, unknowns)
    assert apart.loss >= tuned.loss
    assert apart.apart or len(set(apart.values)) == 1 or len(set(apart.values[1::2])) == 1
    if not apart.apart:
        assert len(set(apart.values[::2])) == 1


# Two penalties must earn it

SCALE = 1.0


class Bowls:
    """Fold k: 1 + |log lambda - centre_k|^2 / 100, one row of centres for each fold."""

    def __init__(self, centres, depth=1.0, minus=1.0):
        self.centres, self.depth, self.minus = np.asarray(centres, float), depth, minus

    def per_fold(self, values):
        squares = (np.log(values[:2]) - self.centres) ** 2 * [1.0, self.minus]
        return 1.0 + self.depth * squares.sum(axis=1) / 100

    def __call__(self, values):
        steps = (np.log(values[:2]) - self.centres) * [1.0, self.minus]
        gradient = 2 * self.depth * steps.mean(axis=0) / 100
        return self.per_fold(values).mean(), gradient


def test_penalties_part_where_every_fold_gains():
    bowls = Bowls([[-8.0, -2.0]] * 5)
    found = tune_apart(bowls, SCALE, TWO)
    assert found.apart
    np.testing.assert_allclose(np.log(found.values), [-8.0, -2.0], atol=0.5)
    assert found.loss == pytest.approx(bowls(found.values)[0], rel=1e-12)


def test_penalties_stay_equal_where_folds_disagree():
    """The mean has its minimum at (-6, -4), but the gain of a fold is as often a loss."""
    far = np.array([[-6.0, -4.0]] * 6) + 9 * np.array([[1, -1], [-1, 1]] * 3)
    bowls = Bowls(far)
    found = tune_apart(bowls, SCALE, TWO)
    assert not found.apart
    assert found.values[0] == found.values[1]
    np.testing.assert_allclose(np.log(found.values), -5.0, atol=0.5)
    one, two = np.full(2, np.exp(-5.0)), np.exp([-6.0, -4.0])
    fall = bowls.per_fold(one) - bowls.per_fold(two)
    assert 0 < fall.mean() < 2 * fall.std(ddof=1) / np.sqrt(6)  # the rule, by hand
    assert found.loss == pytest.approx(bowls(found.values)[0], rel=1e-12)


def test_a_part_that_no_fold_has_is_switched_off():
    flat = Bowls([[-5.0, 0.0]] * 4, minus=0.0)
    found = tune_apart(flat, SCALE, TWO)
    assert found.values[1] == pytest.approx(HIGHEST * SCALE)
    assert np.log(found.values[0]) == pytest.approx(-5.0, abs=0.5)
    assert found.loss == pytest.approx(flat(found.values)[0], rel=1e-12)


@pytest.mark.parametrize("unknowns", [Unknowns((None, None), equal=True), Unknowns((None, 0.5))])
def test_nothing_is_decided_where_one_penalty_is_free(unknowns):
    found = tune_apart(Bowls([[-4.0, -4.0]] * 3), SCALE, unknowns)
    assert found.apart
    assert found.values[1] == (found.values[0] if unknowns.equal else 0.5)


def test_all_trials_are_kept():
    found = tune_apart(Bowls([[-8.0, -2.0]] * 5), SCALE, TWO)
    tied = found.trials[:, 0] == found.trials[:, 1]
    assert 0 < tied.sum() < len(tied)
    losses = [Bowls([[-8.0, -2.0]] * 5)(row[:2])[0] for row in found.trials]
    np.testing.assert_allclose(found.trials[:, -1], losses, rtol=1e-12)


class CountedBowls(Bowls):
    """The same, which counts what it is asked."""

    calls = 0

    def __call__(self, values):
        self.calls += 1
        return super().__call__(values)


@pytest.mark.parametrize("centre", [[-8.0, -2.0], [-5.0, -5.0]])
def test_a_search_that_begins_with_one_fold_ends_with_all(centre):
    """The first fold is away from the mean; every trial that is kept is of all folds."""
    centres = np.array([centre] * 5) + np.linspace(1.0, -1.0, 5)[:, None]
    alone, after = CountedBowls(centres), CountedBowls(centres)
    expected = tune_apart(alone, SCALE, TWO)
    found = tune_apart(after, SCALE, TWO, first=Bowls(centres[:1]))
    assert found.apart == expected.apart == (centre[0] != centre[1])
    np.testing.assert_allclose(np.log(found.values), centre, atol=0.2)
    losses = [Bowls(centres)(row[:2])[0] for row in found.trials]
    np.testing.assert_allclose(found.trials[:, -1], losses, rtol=1e-12)
    assert found.loss == pytest.approx(after(found.values)[0], rel=1e-12)
    assert found.values.tolist() in found.trials[:, :2].tolist()
    assert after.calls < 0.9 * alone.calls


@pytest.mark.parametrize("far", [np.log(LOWEST), np.log(HIGHEST)])
@pytest.mark.parametrize("unknowns", [TWO, Unknowns((None, None), equal=True)])
def test_one_fold_that_differs_from_all_others_leads_nowhere(far, unknowns):
    """It says that penalties have no end; nine folds say where the minimum is."""
    objective = Bowls([[-5.0, -5.0]] * 9)
    found = tune_apart(objective, SCALE, unknowns, first=Bowls([[far, far]], depth=1e-3))
    np.testing.assert_allclose(np.log(found.values), -5.0, atol=0.2)


def test_one_penalty_begins_with_one_fold_too():
    centres = np.array([[-4.0, -4.0]] * 3) + np.array([0.5, 0.0, -0.5])[:, None]
    objective, unknowns = CountedBowls(centres), Unknowns((None, None), equal=True)
    found = tune_apart(objective, SCALE, unknowns, first=Bowls(centres[:1]))
    np.testing.assert_allclose(np.log(found.values), -4.0, atol=0.1)
    assert len(np.unique(found.trials, axis=0)) == len(found.trials) <= objective.calls <= 10


def test_the_largest_fold_is_enough_to_begin_with_if_it_has_many_rows():
    """Weights say which share of the rows is in a fold: half of them in the second."""
    folds, values = diagonal_folds(2), np.array([0.1, 0.2])
    objective = MeanLoss(folds)
    assert objective.of_one_fold(2 * ENOUGH_ROWS - 1) is None
    assert MeanLoss(folds[:1]).of_one_fold(10 * ENOUGH_ROWS) is None
    largest = objective.of_one_fold(2 * ENOUGH_ROWS)
    assert largest is not None
    assert largest(values)[0] == objective.per_fold(values)[1]


class FourBowls(Bowls):
    """The same of four penalties, of which those with odd numbers may have no influence."""

    def per_fold(self, values):
        weights = np.array([1.0, self.minus, 1.0, self.minus])
        return 1.0 + ((np.log(values) - self.centres) ** 2 * weights).sum(axis=1) / 100

    def __call__(self, values):
        weights = np.array([1.0, self.minus, 1.0, self.minus])
        gradient = 2 * ((np.log(values) - self.centres) * weights).mean(axis=0) / 100
        return self.per_fold(values).mean(), gradient


def test_four_penalties_part_where_every_fold_gains():
    found = tune_apart(FourBowls([[-8.0, -2.0, -6.0, 1.0]] * 5), SCALE, FOUR)
    assert found.apart
    np.testing.assert_allclose(np.log(found.values), [-8.0, -2.0, -6.0, 1.0], atol=0.5)


def test_four_penalties_stay_equal_where_folds_disagree():
    away = 9 * np.array([[1, -1, 1, -1], [-1, 1, -1, 1]] * 3)
    found = tune_apart(FourBowls(np.array([[-6.0, -4.0, -6.0, -4.0]] * 6) + away), SCALE, FOUR)
    assert not found.apart
    assert len(set(found.values)) == 1
    assert np.log(found.values[0]) == pytest.approx(-5.0, abs=0.5)


def test_negative_parts_that_no_fold_has_are_switched_off():
    found = tune_apart(FourBowls([[-5.0, 0.0, -5.0, 0.0]] * 4, minus=0.0), SCALE, FOUR)
    np.testing.assert_allclose(found.values[1::2], HIGHEST * SCALE)
    np.testing.assert_allclose(np.log(found.values[::2]), -5.0, atol=0.5)
