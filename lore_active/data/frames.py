"""Data frames and other tables in memory, read by column name without importing libraries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lore_active.data.columns import Sheet
from lore_active.errors import InvalidTriplets

NAME = "the frame"
# Protocols by which data frames of any library can be recognised.
PROTOCOLS = ("__dataframe__", "__arrow_c_stream__")


def sheet_of(source: Any) -> Sheet | None:
    """Sheet of a data frame, mapping of columns or list of records; None for other sources.

    Never iterates over a data frame: some yield rows, others the names of their columns.
    """
    if isinstance(source, Mapping):
        return _of_columns(source)
    if isinstance(source, np.ndarray):
        names = source.dtype.names
        return None if names is None else Sheet("the array", names, lambda k: source[names[k]])
    if isinstance(source, (list, tuple)):
        return _of_records(source) if source and isinstance(source[0], Mapping) else None
    names = getattr(source, "column_names", None)
    if _is_lazy(source):
        raise InvalidTriplets(
            f"A {type(source).__name__} is lazy and has no rows yet: call its collect() first."
        )
    if names is None:
        names = getattr(source, "columns", None)
    if names is None or callable(names):
        if any(hasattr(source, name) for name in PROTOCOLS) and np.ndim(source) != 1:
            raise InvalidTriplets(
                f"A {type(source).__name__} cannot be read by column name: convert it to a pandas "
                "or polars frame first."
            )
        return None
    header = list(names)
    return Sheet(NAME, header, lambda k: np.asarray(_column(source, header, k)))


def _is_lazy(source: Any) -> bool:
    return hasattr(source, "collect") and hasattr(source, "collect_schema")


def _column(frame: Any, header: Sequence[Any], k: int) -> Any:
    if hasattr(frame, "iloc"):
        return frame.iloc[:, k]
    return frame.column(k) if hasattr(frame, "column_names") else frame[header[k]]


def _cells(values: Any) -> NDArray[Any]:
    try:
        return np.asarray(values)
    except ValueError:  # cells of different types; each is validated separately
        cells = np.empty(len(values), dtype=object)
        cells[:] = [*values]
        return cells


def _of_columns(columns: Mapping[Any, Any]) -> Sheet:
    header = list(columns)

    def column(k: int) -> NDArray[Any]:
        values = columns[header[k]]
        if isinstance(values, (str, bytes)) or not hasattr(values, "__len__"):
            raise InvalidTriplets(
                f"The column {str(header[k])!r} is {values!r:.40}, but must have one cell per "
                "answer."
            )
        return _cells(values)

    return Sheet("the mapping", header, column)


def _of_records(records: Sequence[Any]) -> Sheet:
    """Sheet of records, as in JSON."""
    header = list(records[0])
    for row, record in enumerate(records):
        if not isinstance(record, Mapping) or set(record) != set(header):
            raise InvalidTriplets(
                f"Row {row} (counted from 0) of the records is {record!r:.60}, but each must have "
                f"the keys of the first: {', '.join(map(str, header))}."
            )

    def column(k: int) -> NDArray[Any]:
        return np.array([record[header[k]] for record in records], dtype=object)

    return Sheet("the records", header, column)
