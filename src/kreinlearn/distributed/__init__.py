"""Dask collections as rows: the only room that imports dask, and only when one arrives."""
