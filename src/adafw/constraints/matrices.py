"""What the sets of matrices share: the matrix behind a vector."""

from adafw import arrays, checks
from adafw.typing import AnyArray, Shape


def matrix_shape(shape: object) -> tuple[int, int] | None:
    """(rows, columns) as the `shape` of a set of matrices gives it, or None."""
    if shape is None:
        return None
    if not isinstance(shape, tuple | list) or len(shape) != 2:
        raise ValueError(f"shape must be a pair (rows, columns), got {shape!r}.")
    return checks.integer(shape[0], "rows", 1), checks.integer(shape[1], "columns", 1)


def check_point_shape(shape: Shape, matrix: tuple[int, int] | None, name: str) -> tuple[int, int]:
    """The shape of the matrix that a point of this shape stands for."""
    sizes = arrays.as_shape(shape)
    if matrix is None and len(sizes) == 2:
        return sizes[0], sizes[1]
    if matrix is not None and sizes in (matrix, (matrix[0] * matrix[1],)):
        return matrix
    if matrix is None:
        raise ValueError(
            f"this {name} holds matrices, got shape {sizes}; give it shape=(rows, columns) to let "
            "vectors stand for matrices."
        )
    raise ValueError(
        f"this {name} holds vectors of {matrix[0] * matrix[1]} entries, matrices of shape "
        f"{matrix}, got shape {sizes}."
    )


def as_matrix(x: AnyArray, matrix: tuple[int, int] | None, name: str) -> AnyArray:
    """The matrix that x is, or stands for row by row."""
    return x.reshape(check_point_shape(tuple(x.shape), matrix, name))
