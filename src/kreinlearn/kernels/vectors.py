"""Kernels on vectors that are given by a formula."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from kreinlearn.kernels.base import Array, Columns, Kernel, Objects
from kreinlearn.kernels.vector_columns import (
    FINITE,
    DistanceColumns,
    ProductColumns,
    TruncatedL1Columns,
    floats,
    fused,
    number,
    positive,
    require_small,
    spread,
    squared_norms,
)

GRID = (1 / 16, 1 / 4, 1.0, 4.0, 16.0)  # factors of a width that are worth trying


class VectorKernel(Kernel):
    """A kernel on vectors; ``scale`` names the parameter that says how far it reaches."""

    scale: str | None = None  # the parameter that says how far the kernel reaches

    def grid(self) -> list[dict[str, Any]]:
        if self.scale is None:
            return []
        fitted = getattr(self, f"{self.scale}_")
        given = self.get_params(deep=False)
        return [{**given, self.scale: factor * fitted} for factor in GRID]

    def symmetric(self, Z: Objects, own: Array | None = None) -> Array:  # (m, m)
        K = np.triu(self.columns(Z)(Z), 1)
        K += K.T
        np.fill_diagonal(K, self.diagonal(Z))
        return K


class _RadialKernel(VectorKernel):
    """k(x, z) = g(|x - z|^2); a subclass gives ``_apply``, which computes g, and ``_at_zero``,
    g(0).
    """

    sparse = cheap = True
    scale = "width"
    width_: float

    def __init__(self, width: float | str = "median") -> None:
        self.width = width

    def fit(self, X: Objects, rng: np.random.Generator) -> Self:
        self.width_ = spread(self.width, "width", X, rng)
        return self

    def columns(self, Z: Objects) -> Columns:
        check_is_fitted(self)
        return DistanceColumns(Z, self._apply())

    def diagonal(self, A: Objects) -> Array:
        A = floats(A)
        return np.full(A.shape[0], self._at_zero())

    def _apply(self) -> Callable[[Array], None]:
        raise NotImplementedError

    def _at_zero(self) -> float:
        return 1.0


class Gaussian(_RadialKernel, names=["gaussian"]):
    """The Gaussian kernel k(x, z) = exp(-|x - z|^2 / width), which is positive definite.

    Parameters
    ----------
    width : float or {"median", "scale"}, default="median"
        A positive number, "median" for the median of the squared distances, or "scale" for
        n_features * X.var().

    Attributes
    ----------
    width_ : float
        The width as fitted.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> Gaussian(width=2.0).fit(X, np.random.default_rng(0))(X).round(3)
    array([[1.   , 0.607, 0.011],
           [0.607, 1.   , 0.135],
           [0.011, 0.135, 1.   ]])
    """

    def _apply(self) -> Callable[[Array], None]:
        return fused("gaussians", weights=(1.0,), rates=(1 / self.width_,))


class DeltaGauss(_RadialKernel, names=["delta_gauss"]):
    """k(x, z) = exp(-|x - z|^2 / width) - exp(-ratio |x - z|^2 / width), so that k(x, x) = 0.

    Parameters
    ----------
    width : float or {"median", "scale"}, default="median"
        A positive number, "median" for the median of the squared distances, or "scale" for
        n_features * X.var().
    ratio : float, default=4.0
        The width divided by the second, usually narrower, width. It must not be 1.

    Attributes
    ----------
    width_ : float
        The width as fitted.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> DeltaGauss(width=2.0).fit(X, np.random.default_rng(0))(X).round(3)
    array([[0.   , 0.471, 0.011],
           [0.471, 0.   , 0.135],
           [0.011, 0.135, 0.   ]])
    """

    def __init__(self, width: float | str = "median", ratio: float = 4.0) -> None:
        self.width = width
        self.ratio = ratio

    def fit(self, X: Objects, rng: np.random.Generator) -> Self:
        if positive(self.ratio, "ratio") == 1:
            raise ValueError(
                "ratio=1 makes the kernel zero everywhere; pass another one, such as 4"
            )
        return super().fit(X, rng)

    def _apply(self) -> Callable[[Array], None]:
        return fused("delta_gauss", rate=1 / self.width_, ratio=float(self.ratio))

    def _at_zero(self) -> float:
        return 0.0


class GaussianCombination(_RadialKernel, names=["gaussian_combination"]):
    """k(x, z) = sum_i weights[i] exp(-|x - z|^2 / (widths[i] unit)).

    Parameters
    ----------
    weights : sequence of float, default=(1.0, -1.0)
        Weights of any sign.
    widths : sequence of float, default=(1.0, 0.25)
        Positive numbers, one per weight, in multiples of ``unit``.
    unit : float or {"median", "scale"}, default="median"
        A positive number (with 1 the widths count as they are), "median" for the median of the
        squared distances, or "scale" for n_features * X.var().

    Attributes
    ----------
    unit_ : float
        The unit as fitted.
    widths_ : tuple of float
        The widths times the unit.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [1.0]])
    >>> k = GaussianCombination(weights=(2.0, -1.0), widths=(2.0, 1.0), unit=1.0)
    >>> k.fit(X, np.random.default_rng(0))(X).round(3)
    array([[1.   , 0.845],
           [0.845, 1.   ]])
    """

    scale = "unit"

    def __init__(
        self,
        weights: Sequence[float] = (1.0, -1.0),
        widths: Sequence[float] = (1.0, 0.25),
        unit: float | str = "median",
    ) -> None:
        self.weights = weights
        self.widths = widths
        self.unit = unit

    def fit(self, X: Objects, rng: np.random.Generator) -> Self:
        weights = [number(w, "a weight") for w in np.ravel(self.weights).tolist()]
        widths = [positive(s, "a width") for s in np.ravel(self.widths).tolist()]
        if len(weights) != len(widths) or not weights:
            raise ValueError(
                f"weights={self.weights!r} and widths={self.widths!r}: pass one width per weight"
            )
        self.unit_ = spread(self.unit, "unit", X, rng)
        self.widths_ = tuple(s * self.unit_ for s in widths)
        return self

    def _apply(self) -> Callable[[Array], None]:
        weights = tuple(np.ravel(self.weights).tolist())
        return fused("gaussians", weights=weights, rates=tuple(1 / s for s in self.widths_))

    def _at_zero(self) -> float:
        return float(np.sum(self.weights))


class Epanechnikov(_RadialKernel, names=["epanechnikov"]):
    """k(x, z) = max(0, 1 - |x - z|^2 / width)^power.

    Parameters
    ----------
    width : float or {"median", "scale"}, default="median"
        A positive number, "median" for the median of the squared distances, or "scale" for
        n_features * X.var().
    power : float, default=1
        A positive number; 1, 2 and 3 are fastest.

    Attributes
    ----------
    width_ : float
        The width as fitted.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> Epanechnikov(width=4.0).fit(X, np.random.default_rng(0))(X)
    array([[1.  , 0.75, 0.  ],
           [0.75, 1.  , 0.  ],
           [0.  , 0.  , 1.  ]])
    """

    def __init__(self, width: float | str = "median", power: float = 1) -> None:
        self.width = width
        self.power = power

    def fit(self, X: Objects, rng: np.random.Generator) -> Self:
        positive(self.power, "power")
        return super().fit(X, rng)

    def _apply(self) -> Callable[[Array], None]:
        return fused("epanechnikov", rate=1 / self.width_, power=self.power)


class Multiquadric(_RadialKernel, names=["multiquadric"]):
    """k(x, z) = sqrt(1 + |x - z|^2 / width), which grows with the distance.

    It is conditionally negative definite.

    Parameters
    ----------
    width : float or {"median", "scale"}, default="median"
        A positive number, "median" for the median of the squared distances, or "scale" for
        n_features * X.var().

    Attributes
    ----------
    width_ : float
        The width as fitted.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> Multiquadric(width=3.0).fit(X, np.random.default_rng(0))(X).round(3)
    array([[1.   , 1.155, 2.   ],
           [1.155, 1.   , 1.528],
           [2.   , 1.528, 1.   ]])
    """

    def _apply(self) -> Callable[[Array], None]:
        return fused("multiquadric", width=self.width_)


class Sigmoid(VectorKernel, names=["sigmoid"]):
    """k(x, z) = tanh(gain <x, z> + bias).

    Parameters
    ----------
    gain : float or "scale", default="scale"
        A number, or "scale" for 1 / (n_features * X.var()), which is 1 / n_features if X is
        standardised.
    bias : float, default=-1.0
        A number.

    Attributes
    ----------
    gain_ : float
        The gain as fitted.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [1.0]])
    >>> Sigmoid(gain=1.0, bias=0.0).fit(X, np.random.default_rng(0))(X).round(3)
    array([[0.   , 0.   ],
           [0.   , 0.762]])
    """

    sparse = True
    scale = "gain"

    def __init__(self, gain: float | str = "scale", bias: float = -1.0) -> None:
        self.gain = gain
        self.bias = bias

    def fit(self, X: Objects, rng: np.random.Generator) -> Self:
        number(self.bias, "bias")
        if isinstance(self.gain, str) and self.gain == "scale":
            self.gain_ = 1 / spread("scale", "gain", X, rng)
        else:
            self.gain_ = number(self.gain, "gain", f"{FINITE} or 'scale'")
        return self

    def columns(self, Z: Objects) -> Columns:
        check_is_fitted(self)
        return ProductColumns(Z, self.gain_, fused("tanh", bias=float(self.bias)))

    def diagonal(self, A: Objects) -> Array:
        check_is_fitted(self)
        A = floats(A)
        with np.errstate(over="ignore"):
            norms = squared_norms(A)
        require_small(norms, "row")
        return np.tanh(norms * self.gain_ + self.bias)


class TruncatedL1(VectorKernel, names=["truncated_l1"]):
    """k(x, z) = max(0, radius - sum_j |x_j - z_j|), on dense rows.

    Parameters
    ----------
    radius : float or {"median", "scale"}, default="median"
        A positive number, "median" for the median of the l1 distances, or "scale" for
        n_features * X.std().

    Attributes
    ----------
    radius_ : float
        The radius as fitted.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> TruncatedL1(radius=2.5).fit(X, np.random.default_rng(0))(X)
    array([[2.5, 1.5, 0. ],
           [1.5, 2.5, 0.5],
           [0. , 0.5, 2.5]])
    """

    scale = "radius"

    def __init__(self, radius: float | str = "median") -> None:
        self.radius = radius

    def fit(self, X: Objects, rng: np.random.Generator) -> Self:
        self.radius_ = spread(self.radius, "radius", X, rng, l1=True)
        return self

    def columns(self, Z: Objects) -> Columns:
        check_is_fitted(self)
        return TruncatedL1Columns(Z, self.radius_)

    def diagonal(self, A: Objects) -> Array:
        check_is_fitted(self)
        A = floats(A)
        return np.full(len(A), self.radius_)
