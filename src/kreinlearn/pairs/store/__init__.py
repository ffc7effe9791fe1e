"""Kernel values on disk, so that no later fit evaluates them again."""
