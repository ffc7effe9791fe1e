"""Errors that carry their parts, so that the command line can name its own flags."""

from __future__ import annotations


class OptionError(ValueError):
    """A table that cannot be read as it is, although an option of ``table`` would help.

    Parameters
    ----------
    problem, remedy : str
        What is wrong, and what to do.
    option : {"columns", "encoding", "delimiter", "decimal", "header"}
        The option that does it. The message ends with it; the command line names its flag instead.
    value : object
        An example of its value.
    """

    def __init__(self, problem: str, remedy: str, option: str, value: object) -> None:
        super().__init__(problem, remedy, option, value)
        self.problem, self.remedy, self.option, self.value = problem, remedy, option, value

    def __str__(self) -> str:
        return f"{self.problem}; {self.remedy}: table(path, {self.option}={self.value!r})"


class EmptyError(ValueError):
    """An input that has no rows or no columns, as its ``shape`` says; ``origin`` names it."""

    def __init__(self, shape: tuple[int, ...], origin: str) -> None:
        super().__init__(shape, origin)
        self.shape, self.origin = shape, origin

    def __str__(self) -> str:
        what = "feature" if self.shape[0] else "sample"
        return (
            f"Found array with 0 {what}(s) (shape={self.shape}) while a minimum of 1 is required: "
            f"{self.origin}"
        )
