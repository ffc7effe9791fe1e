from kreinlearn.kernels._base import *  # noqa
from kreinlearn.kernels._base import (
    Array,
    Columns,
    Objects,
    symmetrised,
    symmetry_rtol,
    Kernel,
    resolve,
)  # noqa
