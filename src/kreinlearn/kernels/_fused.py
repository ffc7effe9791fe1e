"""Element-wise kernels in one pass over a block of d^2 or <x, z>, in place, compiled by numba.

Every loop runs over contiguous float64 values, releases the GIL and vectorises; NaN
stays NaN. Only contraction to fused multiply-adds is allowed, because `_exp` relies on exact
rounding.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from llvmlite import ir
from numba.extending import intrinsic, overload
from numpy.typing import NDArray

from kreinlearn.kernels._compiled import OPTIONS, optimised

Array = NDArray[Any]


def _times_power_of_two(context: Any, p: Any, t: Any) -> Any:
    """p * 2^k, where the low bits of t hold k + 2 * bias: two factors, so that it underflows right.

    These are lines of LLVM: the bits of numbers are read as integers.
    """

    def generate(target: Any, builder: Any, signature: Any, args: Any) -> Any:
        integer, real = ir.IntType(64), target.get_value_type(p)
        bits = builder.bitcast(args[1], integer)
        half = builder.and_(builder.shl(bits, integer(51)), integer(0x7FF << 52))
        rest = builder.sub(builder.shl(bits, integer(52)), half)
        first = builder.fmul(args[0], builder.bitcast(half, real))
        return builder.fmul(first, builder.bitcast(rest, real))

    return p(p, t), generate


_ldexp: Any = intrinsic(_times_power_of_two)

# exp(x) = 2^k exp(r), |r| <= log(2) / 2: adding ``magic`` rounds x / log(2) to the integer k and
# leaves k + 2 * bias in the low bits; log(2) = high + low with k * high exact; then a polynomial in
# r, made of the minimax one of (exp(r) - 1 - r) / r^2 (relative error of exp 4e-18). Below
# ``lowest`` exp is less than half the smallest subnormal number.


_LOWEST, _MAGIC = -745.2, 1.5 * 2.0**52 + 2046
_HIGH, _LOW = 0.6931471803691238, 1.9082149292705877e-10
_FIRST, _REST = (
    2.5000061602835666e-08,
    (
        *(2.763024837921144e-07, 2.7557586373840165e-06, 2.480149309890655e-05),
        *(
            0.00019841269506578688,
            0.0013888888943630114,
            0.008333333333494461,
            0.041666666666530155,
        ),
        *(0.16666666666666413, 0.5000000000000011, 1.0, 1.0),
    ),
)


def _exp_at(x: Any) -> Any:
    """What ``_exp`` compiles to; numba unrolls the loop over the polynomial."""
    x = _LOWEST if x < _LOWEST else x
    t = x * 1.4426950408889634 + _MAGIC
    k = t - _MAGIC
    r = (x - k * _HIGH) - k * _LOW
    p = _FIRST
    for coefficient in _REST:
        p = p * r + coefficient
    return _ldexp(p, t)


def _exp(x: Any) -> Any:
    """exp(x) for x <= 0 (right up to 700 as well), within 2 ulp: compiled code only."""
    raise NotImplementedError


def _exp_of_type(x: Any) -> Any:  # numba compares its signature with that of what it returns
    return _exp_at


cast(Any, overload)(_exp, jit_options=OPTIONS)(_exp_of_type)


@optimised
def _gauss1(v: Array, w: Any, c: Any) -> None:
    for i in range(v.size):
        d2 = 0.0 if v[i] < 0.0 else v[i]
        v[i] = w * _exp(-c * d2)


@optimised
def _gauss2(v: Array, w1: Any, c1: Any, w2: Any, c2: Any) -> None:
    for i in range(v.size):
        d2 = 0.0 if v[i] < 0.0 else v[i]
        v[i] = w1 * _exp(-c1 * d2) + w2 * _exp(-c2 * d2)


@optimised
def _gauss_many(v: Array, w: Array, c: Array) -> None:
    tile = 512
    d2 = np.empty(tile)
    for start in range(0, v.size, tile):
        part = v[start : start + tile]
        for i in range(part.size):
            d2[i] = 0.0 if part[i] < 0.0 else part[i]
            part[i] = 0.0
        for term in range(w.size):
            w_term, c_term = w[term], c[term]
            for i in range(part.size):
                part[i] += w_term * _exp(-c_term * d2[i])


@optimised
def _delta_gauss4(v: Array, c: Any) -> None:
    for i in range(v.size):
        e = _exp(-c * (0.0 if v[i] < 0.0 else v[i]))
        e2 = e * e
        v[i] = e - e2 * e2


@optimised
def _tanh(v: Array, bias: Any) -> None:
    for i in range(v.size):
        u = v[i] + bias
        a = -abs(u) - abs(u)
        e = _exp(-60.0 if a < -60.0 else a)  # tanh is 1 there; subnormal numbers would be slow
        t = (1.0 - e) / (1.0 + e)
        v[i] = -t if u < 0.0 else t


@optimised
def _epanechnikov(v: Array, c: Any, power: int) -> None:
    for i in range(v.size):
        t = 1.0 - c * (0.0 if v[i] < 0.0 else v[i])
        t = 0.0 if t < 0.0 else t
        if power == 2:
            t = t * t
        elif power == 3:
            t = t * t * t
        v[i] = t


@optimised
def _multiquadric(v: Array, width: Any, factor: Any) -> None:
    for i in range(v.size):
        v[i] = factor * math.sqrt(width + (0.0 if v[i] < 0.0 else v[i]))


@optimised
def _truncated_l1(A: Array, Zt: Array, radius: Any, out: Array) -> None:
    d, tile = len(Zt), 256  # the tile's part of Zt stays in cache while the rows go by
    for start in range(0, out.shape[1], tile):
        for i in range(len(A)):
            a, row = A[i], out[i, start : start + tile]
            row[:] = 0.0
            for k in range(0, d - 3, 4):
                z0, z1 = Zt[k, start : start + tile], Zt[k + 1, start : start + tile]
                z2, z3 = Zt[k + 2, start : start + tile], Zt[k + 3, start : start + tile]
                a0, a1, a2, a3 = a[k], a[k + 1], a[k + 2], a[k + 3]
                for j in range(row.size):
                    near = abs(a0 - z0[j]) + abs(a1 - z1[j])
                    row[j] += near + (abs(a2 - z2[j]) + abs(a3 - z3[j]))
            for k in range(d - d % 4, d):
                z0, a0 = Zt[k, start : start + tile], a[k]
                for j in range(row.size):
                    row[j] += abs(a0 - z0[j])
            for j in range(row.size):
                row[j] = 0.0 if row[j] > radius else radius - row[j]


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise ValueError(
            f"kernel produced inf: its parameter {value:.3g} (a weight, bias or one over a width) "
            "is beyond float64; scale the data"
        )
    return float(value)


def gaussians(block: Array, weights: Sequence[float], rates: Sequence[float]) -> None:
    """d2 -> sum_i w_i exp(-c_i d2)."""
    w, c = [_finite(v) for v in weights], [_finite(v) for v in rates]
    if len(w) == 1:
        _gauss1(block.reshape(-1), w[0], c[0])
    elif len(w) == 2:
        _gauss2(block.reshape(-1), w[0], c[0], w[1], c[1])
    else:
        _gauss_many(block.reshape(-1), np.array(w), np.array(c))


def delta_gauss(block: Array, rate: float, ratio: float) -> None:
    """d2 -> exp(-c d2) - exp(-ratio c d2); ratio 4 takes one exp instead of two."""
    if ratio == 4:
        _delta_gauss4(block.reshape(-1), _finite(rate))
    else:
        gaussians(block, (1.0, -1.0), (rate, ratio * rate))


def tanh(block: Array, bias: float) -> None:
    """u -> tanh(u + bias)."""
    _tanh(block.reshape(-1), _finite(bias))


def epanechnikov(block: Array, rate: float, power: float) -> None:
    """d2 -> max(0, 1 - c d2)^power."""
    small = int(power) if power in (1, 2, 3) else 1
    _epanechnikov(block.reshape(-1), _finite(rate), small)
    if small != power:
        np.power(block, power, out=block)


def multiquadric(block: Array, width: float) -> None:
    """d2 -> sqrt(1 + d2 / width), without overflow in between."""
    factor = _finite(1 / math.sqrt(width))
    _multiquadric(block.reshape(-1), _finite(width), factor)


def truncated_l1(A: Array, Zt: Array, radius: float, out: Array) -> None:
    """out = max(0, radius - |x - z|_1) for rows x of A and columns z of Zt."""
    _truncated_l1(np.ascontiguousarray(A), Zt, _finite(radius), out)
