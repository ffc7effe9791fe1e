"""Kernel values on disk: what a fit has evaluated, no later fit evaluates again."""
