"""Tables on disk or in Arrow's memory: which columns are wanted, and their rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import numpy as np

from kreinlearn.data.memory import require_memory
from kreinlearn.data.sources.base import Array, Checked, Stream, library, require_some

LISTED = 8  # names of columns in an error


class Batches(Protocol):
    """Where rows come from: record batches of some columns, in order."""

    schema: Any
    forward: bool  # rows are decoded from the beginning of a file or of a part of it

    @property
    def n(self) -> int: ...

    def begin(self, start: int) -> int:
        """The row at or before ``start`` from which batches can begin."""

    def batches(self, names: Sequence[str], begin: int) -> Iterator[Any]: ...


class ArrowRows(Stream):
    def __init__(
        self, table: Table, decode: Callable[[Any], Array], shape: tuple[int, ...], dtype: Any
    ) -> None:
        self.stored, self.names, self.decode = table.stored, table.names, decode
        self.forward = table.stored.forward
        super().__init__(shape, dtype)

    def begin(self, start: int) -> int:
        return self.stored.begin(start)

    def pieces(self, begin: int) -> Iterator[Array]:
        return map(self.decode, self.stored.batches(self.names, begin))


@dataclass(frozen=True)
class Table:
    """A table of which a kernel has not yet said what it wants: numbers, or one object a row."""

    origin: str
    stored: Batches
    chosen: tuple[str, ...] | None = None  # columns, by the person who gave it
    by_name: bool = False  # columns of a fitted model are looked for, others left alone

    def __len__(self) -> int:
        return self.stored.n

    def pick(self, names: Sequence[str]) -> Table:
        known = self.stored.schema.names
        for name in names:
            if known.count(name) != 1:
                there = "no" if name not in known else "more than one"
                more = f" and {len(known) - LISTED} more" * (len(known) > LISTED)
                raise ValueError(
                    f"there is {there} column {name!r} in {self.origin}; columns are "
                    f"{known[:LISTED]}{more}"
                )
        return replace(self, chosen=tuple(names))

    def without(self, name: str) -> Table:
        self.pick([name])
        return self.pick([other for other in self.names if other != name])

    @property
    def names(self) -> list[str]:
        return list(self.stored.schema.names if self.chosen is None else self.chosen)

    def _types(self) -> dict[str, Any]:
        return {name: self.stored.schema.field(name).type for name in self.pick(self.names).names}

    @property
    def empty(self) -> Any:
        """The columns without rows: what scikit-learn reads the names of features off."""
        fields = [self.stored.schema.field(name) for name in self.names]
        return library("pyarrow").schema(fields).empty_table()

    # What a kernel may want

    def numbers(self) -> Checked:
        pa, types = library("pyarrow"), self._types()
        for name, one in types.items():
            _require_number(pa, name, one, self.origin)
        single = all(pa.types.is_float32(one) for one in types.values())
        dtype = np.dtype(np.float32 if single else np.float64)
        shape = (len(self), len(types))
        require_some(shape, self.origin)
        reader = ArrowRows(self, partial(_numbers_of, dtype=dtype), shape, dtype)
        return Checked(reader, self.origin, self.names)

    def objects(self) -> Checked:
        one = self.pick([self.object_column()])
        require_some((len(self),), self.origin)
        return Checked(ArrowRows(one, _objects_of, (len(self),), object), self.origin, one.names)

    def holds_numbers(self) -> bool:
        pa = library("pyarrow")
        return all(_is_number(pa, one) for one in self._types().values())

    def object_column(self) -> str:
        """The one column of texts or lists; that of any type if it is the only one."""
        names, types = self.names, self._types()
        if len(names) > 1:
            pa = library("pyarrow")
            names = [name for name in names if not _is_number(pa, types[name])]
        if len(names) != 1:
            raise ValueError(
                f"{self.origin} has {len(names)} columns of texts or lists, {names[:LISTED]}, and "
                'one is wanted: table(path, columns="name") names it'
            )
        return names[0]

    def target(self, name: str) -> Array:
        """All values of a column, in memory."""
        parts, first = [], 0
        for batch in self.pick([name]).stored.batches([name], 0):
            column = batch.column(0)
            if column.null_count:
                row = first + column.is_null().to_pylist().index(True)
                raise ValueError(
                    f"Input y contains NaN: row {row} of column {name!r}, {self.origin}"
                )
            parts.append(column.to_numpy(zero_copy_only=False))
            first += len(column)
        require_some((first,), self.origin)
        values = np.concatenate(parts)
        return values.astype(str) if values.dtype == object else values

    def load(self, budget: int) -> Any:
        """The columns in memory, as a table of Arrow, if the budget has room for them."""
        found, size = [], 0
        for batch in self.stored.batches(self.names, 0):
            size += batch.nbytes
            require_memory(
                2 * size, budget, f"holding {self.origin}", "raise memory_budget: kernels on rows "
                "of tables want all of them at once",
            )  # fmt: skip
            found.append(batch)
        return library("pyarrow").Table.from_batches(found, self.empty.schema)


def _is_number(pa: Any, one: Any) -> bool:
    t = pa.types
    return any(is_it(one) for is_it in (t.is_floating, t.is_integer, t.is_boolean, t.is_decimal))


def _require_number(pa: Any, name: str, one: Any, origin: str) -> None:
    if _is_number(pa, one):
        return
    where = f"column {name!r} of {origin}"
    if pa.types.is_temporal(one):
        raise TypeError(f"X must hold numbers, got dates ({one}) in {where}; convert them first")
    if pa.types.is_dictionary(one):
        raise ValueError(f"X must hold numbers, got categories in {where}; encode them first")
    raise ValueError(
        f"could not convert string to float: {where} holds {one}; name the columns of numbers, "
        "table(path, columns=[...])"
    )


def _numbers_of(batch: Any, dtype: Any) -> Array:
    """(b, d) of a record batch; what is missing is NaN, and found by the check."""
    pa = library("pyarrow")
    found = np.empty((batch.num_rows, batch.num_columns), dtype)
    for j, column in enumerate(batch.columns):
        if column.null_count or pa.types.is_decimal(column.type):
            column = column.cast(pa.float64())
        found[:, j] = column.to_numpy(zero_copy_only=False)
    return found


def _objects_of(batch: Any) -> Array:
    return np.fromiter(batch.column(0).to_pylist(), dtype=object, count=batch.num_rows)
