"""Fits and predictions on Dask collections; dask is imported only when a collection is given."""
