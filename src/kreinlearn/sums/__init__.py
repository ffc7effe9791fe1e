"""Sums over rows that do not depend on threads or memory: fixed tiles, added in a fixed tree."""

from typing import Any, TypeAlias

from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
