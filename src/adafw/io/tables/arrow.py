"""Parquet files as tables."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from adafw.io.damage import FileName, is_damage, reason
from adafw.io.tables.columns import ColumnChoice, Layout, Piece, Targets

if TYPE_CHECKING:
    import pyarrow


def pieces(
    path: FileName,
    columns: ColumnChoice,
    dtype: np.dtype[np.floating],
    with_target: bool,
    rows: int,
) -> Iterator[Piece]:
    """The file in pieces of at most so many rows."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise ValueError(
            f"{path}: Parquet files need pyarrow; install it with pip install 'adafw[io]'."
        ) from None
    try:
        with parquet.ParquetFile(path) as file:
            names = list(file.schema_arrow.names)
            layout = Layout.of(len(names), names, columns, path, with_target)
            for batch in file.iter_batches(rows):
                X = np.column_stack([_numbers(batch, j, path) for j in layout.features])
                y = None
                if layout.target is not None:
                    y = _targets(batch, layout.target, path)
                yield Piece(X.astype(dtype), y, layout.names)
    except (pyarrow.ArrowException, OSError) as error:
        if not is_damage(error):
            raise
        raise ValueError(f"{path} must be a whole Parquet file{reason(error)}.") from None


def _numbers(batch: "pyarrow.RecordBatch", j: int, path: FileName) -> Targets:
    values = _targets(batch, j, path)
    if values.dtype.kind != "f":
        name, kind = batch.schema.names[j], batch.column(j).type
        raise ValueError(f"{path}, column {name!r}: expected numbers, got {kind}.")
    return values


def _targets(batch: "pyarrow.RecordBatch", j: int, path: FileName) -> Targets:
    """Column j, by its number as names may repeat: finite numbers, or text, without gaps."""
    name, column = batch.schema.names[j], batch.column(j)
    if column.null_count:
        raise ValueError(f"{path}, column {name!r}: expected a value in every row, got a gap.")
    values = column.to_numpy(zero_copy_only=False)
    if values.dtype.kind not in "biuf":
        return values.astype(np.str_)
    values = values.astype(np.float64)
    if not np.isfinite(values).all():
        raise ValueError(f"{path}, column {name!r}: expected finite numbers, got NaN or inf.")
    return values
