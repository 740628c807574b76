"""What Muon, Scion, Lion and Signum share: steps of the one form over unit balls."""

from typing import ClassVar

from torch import Tensor

from adafw import checks
from adafw.constraints import Constraint, LInfBall, RowBall
from adafw.torch import (
    adamw,
    batched,
    fast,
    gram,
    lists,
    masters,
    matrices,
    owners,
    sharded,
    updates,
)
from adafw.torch.base import ConstrainedOptimizer, Work
from adafw.torch.groups import Flags, rate_of
from adafw.torch.matrices import SpectralNormBall
from adafw.torch.optimizers import check_weights
from adafw.torch.typing import Group, Numbers, Params, State


class NormOptimizer(ConstrainedOptimizer):
    """What the four share; a subclass names its unit ball, gamma and length for a parameter.

    A group with "adamw": True is trained by AdamW with its own lr, weight_decay, adamw_betas and
    adamw_eps; it is meant for what has no ball: norm layers, biases, sometimes embeddings.
    """

    buffers = ("momentum",)
    kernel = "decayed"
    needs_sets = False
    #: What gamma is made of.
    formula: ClassVar[str] = "lr * weight_decay"

    def __init__(
        self, params: Params, defaults: Group, adamw_betas: tuple[float, float],
        adamw_eps: float, fused: bool | None, flags: Flags,
    ) -> None:  # fmt: skip
        rest = {"adamw": False, "adamw_betas": adamw_betas, "adamw_eps": adamw_eps}
        super().__init__(params, {**defaults, **rest, "start": "zero"}, 0, fused, flags)

    def unit_ball(self, group: Group, p: Tensor) -> Constraint:
        """The ball of radius 1 whose LMO gives the direction."""
        raise NotImplementedError

    def decay(self, group: Group) -> float:
        """gamma / lr."""
        return float(group["weight_decay"])

    def factor(self, group: Group, p: Tensor) -> float:
        """a: the step goes lr * a along the unit ball's minimiser, the radius is a / decay."""
        return 1.0

    def set_of(self, group: Group, p: Tensor) -> Constraint | None:
        """The ball that a parameter is drawn into, None where nothing bounds it."""
        if group["adamw"] or self.decay(group) == 0:
            return None
        radius = self.factor(group, p) / self.decay(group)
        return matrices.with_radius(self.unit_ball(group, p), radius)

    def shape_factor(self, group: Group, p: Tensor) -> float:
        return 1.0 if group["adamw"] else self.factor(group, p)

    def gamma_of(self, group: Group) -> float | None:
        return None if group["adamw"] else float(group["lr"]) * self.decay(group)

    def check_group(self, group: Group) -> None:
        if group["constraint"] is not None:
            raise ValueError(
                f"{type(self).__name__} makes its own ball from weight_decay, got the set "
                f"{group['constraint']!r}; use SFW for a set of your own."
            )
        self.check_options(group)
        for p in () if group["adamw"] else group["params"]:
            self.factor(group, p)  # refuses shapes that do not fit
            ball = {**group, "constraint": self.unit_ball(group, p)}
            fast.check_asked(self.kernel, ball, type(self).__name__)

    def check_options(self, group: Group) -> None:
        super().check_options(group)
        if "weight_decay" in group:
            checks.real(group["weight_decay"], "weight_decay", 0)
        check_weights(group["adamw_betas"])
        checks.real(group["adamw_eps"], "adamw_eps", 0)

    def check_lr(self, group: Group) -> float:
        lr, gamma = rate_of(group), self.gamma_of(group)
        if gamma is not None and gamma > 1:
            raise ValueError(
                f"the step size gamma = {self.formula} must be <= 1, got {gamma:g}; take a smaller "
                "lr."
            )
        return lr

    def check_start(self, p: Tensor, group: Group, i: int) -> None:
        """Nothing: a start outside the ball is drawn into it."""

    def buffers_of(self, group: Group) -> tuple[str, ...]:
        if group["adamw"]:
            return adamw.BUFFERS
        return self.buffers if any(updates.weights_of(group)) else ()

    def buffers_known(self) -> tuple[str, ...]:
        return (*self.buffers, *adamw.BUFFERS)

    def _prepare(self, p: Tensor, group: Group, i: int, g: Tensor | None = None) -> None:
        if group["adamw"]:
            adamw.prepare(p, self.state[p], group["capturable"])
            masters.prepare(p, self.state[p], group["masters"])
        else:
            super()._prepare(p, group, i, g)

    def _move_all(self, whole: list[Work], parts: list[Work]) -> None:
        by_group: dict[int, list[Work]] = {}
        for work in whole + parts:
            if work[2]["adamw"]:
                by_group.setdefault(id(work[2]), []).append(work)
        for works in by_group.values():
            adamw.step(works, self.state)
        super()._move_all([w for w in whole if not w[2]["adamw"]],
                          [w for w in parts if not w[2]["adamw"]])  # fmt: skip

    def metric_of(self, g: Tensor, state: State, options: Group) -> tuple[Tensor, Tensor | None]:
        return updates.one_form(g, state, options)

    def move_together(self, work: list[Work]) -> list[Work]:
        """Matrices of one shape in a stack, signs in plain torch by functions of lists."""
        stacks: list[tuple[Tensor, Tensor, Tensor, SpectralNormBall, Group]] = []
        lists: dict[int, list[Work]] = {}
        rest = []
        for p, g, options in work:
            ball = self.unit_ball(options, p)
            if batched.may_stack(ball, p, options):
                stacks.append((p, *self._in_precision(p, g), ball, options))
            elif type(ball) is LInfBall and batched.may_list(p, g, options):
                lists.setdefault(id(options), []).append((p, g, options))
            else:
                rest.append((p, g, options))
        ds = [updates.kept_form(g, self.state[p], options) for p, _, g, _, options in stacks]
        found = batched.vertices([ball for *_, ball, _ in stacks], ds)
        for (p, x, _, _, options), v in zip(stacks, found, strict=True):
            length = options["lr"] * self.factor(options, p)
            x.mul_(1 - options["lr"] * self.decay(options)).add_(v, alpha=length)
            self._moved(p, x)
        for members in lists.values():
            self._move_signs(members)
        return rest

    def _move_signs(self, work: list[Work]) -> None:
        """Steps along signs on tensors of one group; of one length each."""
        by_length: dict[float, list[Work]] = {}
        for p, g, options in work:
            by_length.setdefault(options["lr"] * self.factor(options, p), []).append(
                (p, g, options)
            )
        for length, members in by_length.items():
            options = members[0][2]
            params, states = [p for p, _, _ in members], [self.state[p] for p, _, _ in members]
            momenta = [s["momentum"] for s in states] if "momentum" in states[0] else None
            keep = 1 - options["lr"] * self.decay(options)
            gradients = [g for _, g, _ in members]
            batched.along_signs(
                params, gradients, momenta, updates.weights_of(options), keep, length
            )
            for p in params:
                self._moved(p, p)

    def numbers_of(self, p: Tensor, state: State, options: Group) -> Numbers | None:
        if options["fused"] is False or type(self.unit_ball(options, p)) is not LInfBall:
            return None
        if not lists.modules():
            return None
        lr = options["lr"]
        return (*updates.weights_of(options), 1 - lr * self.decay(options),
                lr * self.factor(options, p))  # fmt: skip

    def move_whole(self, x: Tensor, g: Tensor, state: State, options: Group) -> None:
        row = self.numbers_of(x, state, options)
        if row is not None and lists.move_one("decayed", x, g, state, row):
            return
        ball, length = self.unit_ball(options, x), options["lr"] * self.factor(options, x)
        d, _ = updates.one_form(g, state, options)
        updates.toward(x, d, ball, 1 - options["lr"] * self.decay(options), length)

    def move_part(
        self, p: Tensor, x: Tensor, m: Tensor, h: Tensor | None, shard: sharded.Shard,
        options: Group,
    ) -> gram.Job | owners.Job | None:  # fmt: skip
        ball, length = self.unit_ball(options, p), options["lr"] * self.factor(options, p)
        keep = 1 - options["lr"] * self.decay(options)
        own_rows = type(ball) is RowBall and shard.dim == 0
        if type(ball) is LInfBall or own_rows:  # a row that lies here needs no other
            if x.numel() > 0:
                updates.toward(x, m, ball, keep, length)
            return None

        if gram.fits(ball, shard):
            return gram.Job(shard, m, ball, lambda v, _: x.mul_(keep).add_(v, alpha=length))

        def vertex(d: Tensor) -> tuple[Tensor, float]:
            return matrices.lmo(ball, d), 0.0

        return owners.Job(shard, [m], vertex, lambda v, _: x.mul_(keep).add_(v, alpha=length))
