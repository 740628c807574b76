"""SVRF's estimate: a minibatch corrected by the exact gradient at a snapshot."""

from dataclasses import dataclass

from adafw import checks
from adafw.gradients.sampling import FromSnapshots
from adafw.schedules import LinearGrowth


@dataclass(frozen=True)
class SVRF(FromSnapshots):
    """g_t = grad f(z) + (1/b_t) sum_i (grad f_i(x_t) - grad f_i(z)), z the last snapshot.

    Snapshots are taken at t = 2^(k + k0) - 2^k0, where the gradient is exact (Remark 3.6).
    `batch_size` (b_t): t up to m // 10 if None. Table 1, row SVRF (Hazan and Luo 2016);
    Algorithm 5. m evaluations at a snapshot, 2 b_t elsewhere.
    """

    usual_size = LinearGrowth()
    k0: int = 4

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "k0", checks.integer(self.k0, "k0", 0))
        if self.k0 > 62:
            raise ValueError(f"k0 must be at most 62, as snapshots are 2^k0 apart, got {self.k0}.")

    def is_snapshot(self, t: int) -> bool:
        """Whether t = 2^(k + k0) - 2^k0 for some k."""
        shifted = t + (1 << self.k0)
        return shifted & (shifted - 1) == 0
