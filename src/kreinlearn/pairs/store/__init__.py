"""Kernel values on disk, so that what one fit has evaluated no later fit evaluates again."""
