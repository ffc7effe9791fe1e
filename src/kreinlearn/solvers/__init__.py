"""Mathematics of small matrices: pure functions without kernels, data sources or validation."""
