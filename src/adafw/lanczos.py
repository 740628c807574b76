"""Golub and Kahan's bidiagonalisation: the Lanczos method for singular values."""

import math
from collections.abc import Callable, Iterator
from itertools import count

import numpy as np

from adafw import arrays
from adafw.typing import AnyArray


def golub_kahan(
    forward: Callable[[AnyArray], AnyArray],
    backward: Callable[[AnyArray], AnyArray],
    v: AnyArray,
    bases: tuple[AnyArray, AnyArray] | None = None,
) -> Iterator[tuple[float, float]]:
    """Yields (alpha_k, beta_k), k = 0, 1, ...: the diagonal of B, and what stands right of it.

    A V = U B, and B^T B is what Lanczos steps on A^T A from v give: alpha_k u_k = A v_k -
    beta_{k-1} u_{k-1} and beta_k v_{k+1} = A^T u_k - alpha_k v_k (Golub and Kahan 1965). Two
    products a step.

    Parameters
    ----------
    forward, backward : products with A and with A^T.
    bases : (U, V), arrays whose rows are written; each new row is made orthogonal to all before
        it. None keeps the last two vectors only, and rounding then makes copies of singular values
        of B, but spoils none.
    """
    norm = _plain_norm if bases is None else arrays.norm
    rest, beta = v, float(norm(v))
    u: AnyArray = None
    # A norm of 0 ends nothing here: the caller sees alpha or beta, and knows what they mean to it.
    for k in count():
        v = rest / (beta or 1.0)
        image = forward(v)
        if bases is not None:
            bases[1][k] = v
            image = orthogonal(image, bases[0][:k])
        elif k:
            image -= beta * u
        alpha = float(norm(image))
        image /= alpha or 1.0
        u = image
        rest = backward(u)
        if bases is not None:
            bases[0][k] = u
            rest = orthogonal(rest, bases[1][: k + 1])
        else:
            rest -= alpha * v
        beta = float(norm(rest))
        yield alpha, beta


def _plain_norm(x: AnyArray) -> float:
    """||x||_2 of a numpy vector, for long ones: without bases, passes over them are the cost.

    Not by BLAS, whose threads wait for each other actively: between the products, which run on one,
    that took as long again as all the rest.
    """
    return math.sqrt(np.einsum("i,i->", x, x))


def orthogonal(x: AnyArray, basis: AnyArray) -> AnyArray:
    """x minus its part in the span of the rows of `basis`, twice, which is enough (Kahan)."""
    for _ in range(2):
        x = x - (basis @ x) @ basis
    return x
