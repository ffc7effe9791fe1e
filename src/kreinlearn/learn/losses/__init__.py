"""Losses as values: each knows its loss on a fold, how it is tuned, and its solution."""
