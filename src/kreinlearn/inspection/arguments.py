"""Types and checks of the arguments that ``inspect``, ``indefiniteness`` and ``evaluate`` share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kreinlearn.data.tiles import Source
from kreinlearn.kernels import Kernel

Array = NDArray[Any]
Objects = ArrayLike | Sequence[object] | Source  # whatever the kernel takes
KernelLike = str | Kernel | Callable[..., object] | dict[Any, Any]
KernelParams = Mapping[str, object] | None
Seed = int | np.random.RandomState | np.random.Generator | None

CHECKS = {  # for validate_params of scikit-learn
    "kernel": [str, callable, Kernel, dict],
    "kernel_params": [dict, None],
    "n_jobs": [Integral, None],
    "random_state": ["random_state", np.random.Generator],
    "verbose": ["verbose"],
}
