"""Reproducible sums over rows: fixed tiles, a fixed tree, any number of threads."""
