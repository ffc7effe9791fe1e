"""Pure functions of small matrices: no kernels, no data sources, no validation."""
