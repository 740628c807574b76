"""CSV and TSV files as tables."""

import csv
import io
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from adafw.io.damage import FileName
from adafw.io.packed import opened
from adafw.io.tables.columns import ColumnChoice, Layout, Piece, Targets


def pieces(
    path: FileName,
    columns: ColumnChoice,
    dtype: np.dtype[np.floating],
    with_target: bool,
    rows: int,
) -> Iterator[Piece]:
    """The file in pieces of so many rows; its first row is a header if a cell is no number."""
    with opened(path) as raw:
        # Not closed here: that would close the file before it is asked whether it changed.
        text = io.TextIOWrapper(raw, encoding="utf-8", newline="")
        reader = csv.reader(text, delimiter="\t" if ".tsv" in str(path).lower() else ",")
        table: _Table | None = None
        try:
            for row in reader:
                if not row or (len(row) == 1 and not row[0].strip()):
                    continue
                if table is None:
                    # The last cell is left out: a target may be a word where there is no header.
                    header = not all(is_number(cell) for cell in row[:-1] or row)
                    names = [cell.strip() for cell in row] if header else None
                    layout = Layout.of(len(row), names, columns, path, with_target)
                    table = _Table(layout, path, dtype)
                    if header:
                        continue
                table.add(row, reader.line_num)
                if len(table.rows) == rows:
                    yield table.piece()
        except csv.Error as error:
            raise ValueError(f"{path}, line {reader.line_num}: {error}.") from None
        except UnicodeDecodeError:
            raise ValueError(f"{path} must be UTF-8 text, got other bytes.") from None
        if table is None:
            raise ValueError(f"{path} must hold at least one sample, got an empty file.")
        if table.rows:
            yield table.piece()


class _Table:
    """Rows of text, collected until they are enough for a piece."""

    def __init__(self, layout: Layout, path: FileName, dtype: np.dtype[np.floating]) -> None:
        self.layout, self.path, self.dtype = layout, path, dtype
        self.rows: list[list[str]] = []
        self.lines: list[int] = []

    def add(self, row: list[str], line: int) -> None:
        """One more row, which ended at this line of the file."""
        width = self.layout.width
        if len(row) != width:
            raise ValueError(f"{self.path}, line {line}: expected {width} columns, got {len(row)}.")
        self.rows.append(row)
        self.lines.append(line)

    def piece(self) -> Piece:
        """The rows as numbers; the collection is empty again."""
        cells = np.array(self.rows, dtype=object)
        X = self._features(cells[:, self.layout.features])
        y = None if self.layout.target is None else self._targets(cells[:, self.layout.target])
        self.rows, self.lines = [], []
        return Piece(X, y, self.layout.names)

    def _features(self, cells: NDArray[np.object_]) -> NDArray[np.floating]:
        try:
            # float() would take 1_000 for a number, which no other program does.
            odd = any("_" in "".join(row) for row in cells)
            values = None if odd else cells.astype(np.float64)
        except ValueError:
            values = None
        if values is not None and np.isfinite(values).all():
            return values.astype(self.dtype)
        i, j = next(
            (i, j)
            for i, row in enumerate(cells)
            for j, cell in enumerate(row)
            if not is_number(cell) or not np.isfinite(float(cell))
        )
        raise self._wrong(i, self.layout.features[j], "a finite number", cells[i, j])

    def _targets(self, cells: NDArray[np.object_]) -> Targets:
        target = self.layout.target
        assert target is not None
        if all(is_number(cell) for cell in cells):
            y = cells.astype(np.float64)
            for bad in np.flatnonzero(~np.isfinite(y))[:1]:
                raise self._wrong(bad, target, "a finite target", cells[bad])
            return y
        words = [str(cell).strip() for cell in cells]
        if "" in words:
            raise self._wrong(words.index(""), target, "a target", "")
        return np.array(words)

    def _wrong(self, i: int, column: int, wanted: str, got: str) -> ValueError:
        place = f"{self.path}, line {self.lines[i]}, column {column + 1}"
        return ValueError(f"{place}: expected {wanted}, got {got!r}.")


def is_number(cell: str) -> bool:
    """Whether a cell is a number as other programs write them."""
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell
