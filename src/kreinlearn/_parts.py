"""The former place of ``part_done``, which is in ``kreinlearn.progress``."""

from kreinlearn.progress import part_done

__all__ = ["part_done"]
