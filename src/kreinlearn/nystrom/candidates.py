"""The rows among which landmarks are chosen: those of a sample, or all rows as a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from kreinlearn.data.tiles import tiles
from kreinlearn.kernels.base import Array, Objects
from kreinlearn.pairs.evaluate import evaluate, scaled
from kreinlearn.pairs.pairs import Pairs
from kreinlearn.pairs.sample import Sample
from kreinlearn.sums.gram import Gram
from kreinlearn.sums.parallel import map_blocks, sum_over_blocks


@dataclass(frozen=True)
class Candidates:
    """Similarities of the candidates to the landmarks so far, one tile at a time."""

    pairs: Pairs
    sample: Sample

    @property
    def numbers(self) -> Array:
        """Row numbers of the candidates."""
        return np.arange(len(self.pairs.rows)) if self.sample.streams else self.sample.rows

    def gram(self) -> Gram:
        """C'C over all candidates, of C / unit."""
        load, blocks, m = *self._loader(), len(self.sample.landmarks)

        def add(total: Gram, block: Any) -> None:
            total.add(load(block)[1])

        with self._progress():
            n, zero = len(self.numbers), lambda: Gram.zeros(m)
            return sum_over_blocks(add, blocks, zero, n, workers=self.pairs.workers)

    def mapped(self, function: Callable[[Array], Array], out: Array) -> Array:
        """Write ``function(C / unit)`` of all candidates to ``out``."""
        load, blocks = self._loader()

        def one_tile(block: Any) -> None:
            here, C = load(block)
            out[here] = function(C)

        with self._progress():
            map_blocks(one_tile, blocks, workers=self.pairs.workers)
        return out

    def _progress(self) -> AbstractContextManager[None]:
        """A step of the progress bar, if all rows are evaluated."""
        if not self.sample.streams:
            return nullcontext()
        n = len(self.pairs.rows)
        return self.pairs.session.progress.step("landmarks", n, n * len(self.sample.columns))

    def _loader(self) -> tuple[Callable[[Any], tuple[slice, Array]], Iterable[Any]]:
        """A function from a block to its place and its C / unit, and all the blocks."""
        pairs, sample, unit = self.pairs, self.sample, self.sample.unit
        if not sample.streams:
            C = scaled(sample.C, unit)
            return lambda span: (slice(*span), C[slice(*span)]), tiles(len(C))
        columns, scratch = pairs.evaluator(sample), pairs.scratch()

        def load(block: tuple[Array, Objects]) -> tuple[slice, Array]:
            numbers, A = block
            values, room = partial(columns.of_rows, numbers), scratch.get(A, len(sample.columns))
            C = evaluate(values, A, numbers, sample.landmarks, room)
            pairs.session.progress.add(len(numbers), len(numbers) * len(sample.columns))
            return slice(numbers[0], numbers[-1] + 1), scaled(C, unit)

        return load, pairs.rows.blocks(sample.rows[:0])
