"""exp(x) for x <= 0 without a call or a branch, so that compilers do several at once.

x = k log 2 + r with |r| <= log(2) / 2, and exp(x) = 2^k exp(r), exp(r) by its series: what is left
out after the 13th power is below 5e-18. Within one unit of the last digit of the exact value, and
the same bits on every machine, which the exponential of a C library does not promise.
"""

import math

import numpy as np

from adafw.kernels.jit import jit

#: 1.5 * 2^52: a number to which it is added is rounded to an integer, found in the last bits.
ROUND = 6755399441055744.0
#: log 2 in two parts: k times the first is exact, as its last bits are 0.
HIGH, LOW = 0.6931471803691238, 1.9082149292705877e-10
PER_BIT = 1.4426950408889634
#: Below, exp(x) < 4e-308 is taken for 0.
LEAST = -708.0
C2, C3, C4, C5, C6, C7, C8, C9, C10, C11, C12, C13 = (1 / math.factorial(k) for k in range(2, 14))
#: Where the exponent of a float begins, and that of 1.0.
PLACE, UNIT = np.int64(52), np.int64(1023 << 52)


@jit
def exponential(x: float) -> float:
    """exp(x), x <= 0."""
    small = x < LEAST
    x = np.float64(max(x, LEAST))
    shifted = x * PER_BIT + ROUND
    k = shifted - ROUND
    r = (x - k * HIGH) - k * LOW
    p = ((((C13 * r + C12) * r + C11) * r + C10) * r + C9) * r + C8
    p = (((((p * r + C7) * r + C6) * r + C5) * r + C4) * r + C3) * r + C2
    power = np.int64((np.float64(shifted).view(np.int64) << PLACE) + UNIT).view(np.float64)
    return 0.0 if small else (p * (r * r) + r + 1.0) * power
