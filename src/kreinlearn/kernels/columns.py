from kreinlearn.kernels._columns import squared_norms  # noqa
