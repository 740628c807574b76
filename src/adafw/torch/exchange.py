"""What the ranks do together for a set whose LMO needs the whole of a sharded tensor."""

from typing import Any

from torch import Tensor

from adafw.torch import gram, matrices, owners, updates
from adafw.torch.sharded import Shard
from adafw.torch.typing import Group
from adafw.torch.updates import Update


def whole_job(
    update: Update[Any], x: Tensor, m: Tensor, h: Tensor | None, shard: Shard, options: Group
) -> gram.Job | owners.Job:
    """By the Gram matrix where that is enough, else by the tensor's owner, as one process would."""
    constraint = options["constraint"]
    if h is None and options["rescale"] in (None, "diameter"):  # x need not travel
        if gram.fits(constraint, shard):
            lr = updates.step_size(m, m, constraint, options, shard.shape)
            return gram.Job(
                shard, m, constraint, lambda v, any: x.addcmul_(x - v, lr * any, value=-1)
            )

        def vertex(m: Tensor) -> tuple[Tensor, Tensor]:
            gamma = updates.step_size(m, m, constraint, options) * m.any()
            return matrices.lmo(constraint, m), gamma

        return owners.Job(shard, [m], vertex, lambda v, gamma: x.addcmul_(x - v, gamma, value=-1))

    def moved(x: Tensor, m: Tensor, h: Tensor | None = None) -> tuple[Tensor, float]:
        update.move(x, m, h, constraint, options)
        return x, 0.0

    parts = [x, m] if h is None else [x, m, h]
    return owners.Job(shard, parts, moved, lambda new, _: x.copy_(new))
