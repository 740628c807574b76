"""STORC's estimate: SVRF's, with a snapshot at the start of every stage."""

from dataclasses import dataclass

from adafw.gradients.sampling import FromSnapshots
from adafw.schedules import Stages


@dataclass(frozen=True)
class StagedSVRG(FromSnapshots):
    """g_t = grad f(w) + (1/b_t) sum_i (grad f_i(x_t) - grad f_i(w)), w where the stage began.

    Stages are those of `schedules.Stages`; the gradient is exact at their first iterations, which
    draw nothing. `batch_size` (b_t): m // 100 if None. m evaluations at a snapshot, 2 b_t
    elsewhere. Hazan and Luo (2016), algorithm 2.
    """

    def is_snapshot(self, t: int) -> bool:
        return Stages().around(t)[0] == t
