"""Mathematics of small matrices: pure functions without kernels, data sources or validation."""

from typing import Any, TypeAlias

from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
