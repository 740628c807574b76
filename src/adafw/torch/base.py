"""What all optimizers share: parameter groups with sets, checks, checkpoints, the step."""

import warnings
from typing import TYPE_CHECKING, Any, ClassVar, cast

import torch
from torch import Tensor
from torch.optim import Optimizer

from adafw.constraints import Constraint
from adafw.torch import (
    checkpoints,
    description,
    fast,
    gram,
    lists,
    masters,
    owners,
    sharded,
)
from adafw.torch.exchange import whole_job
from adafw.torch.feasible import check_start, name_of, plain_name
from adafw.torch.groups import (
    FLAGS,
    Flags,
    Found,
    check_finite,
    rate_of,
    refuse_decay,
    refuse_sparse,
    state_dtype,
)
from adafw.torch.typing import Closure, Group, Numbers, Packed, Params, State
from adafw.torch.updates import Update

if TYPE_CHECKING:
    from torch.distributed.tensor import DTensor

Work = tuple[Tensor, Tensor, Group]  # parameter, gradient, options


class ConstrainedOptimizer(Optimizer):
    """A torch optimizer whose parameter groups carry a set: {"params": [...], "constraint": C}.

    The set acts on each parameter tensor by itself, sets of matrices on its (out, rest) form;
    None leaves a group unconstrained. A subclass names its buffers and its update, and checks
    its options.
    """

    #: Names of the state tensors, shaped as the parameter and at least float32.
    buffers: ClassVar[tuple[str, ...]] = ()
    update: ClassVar[Update[Any]]
    #: Name of the compiled update in `adafw.torch.kernels`, if there is one.
    kernel: ClassVar[str | None] = None
    #: Sets for which shards need no more of each other than a few sums.
    sharded_sets: ClassVar[tuple[type, ...]] = sharded.EXACT

    #: Whether to be constructed without any mention of a set is likely a mistake.
    needs_sets: ClassVar[bool] = True

    def __init__(
        self, params: Params, defaults: Group, weight_decay: float, fused: bool | None,
        flags: Flags | None = None,
    ) -> None:  # fmt: skip
        self._checked: dict[int, object] = {}
        unknown = (flags or {}).keys() - FLAGS.keys()
        if unknown:
            raise TypeError(f"{type(self).__name__} has no option {', '.join(sorted(unknown))}.")
        refuse_decay(weight_decay)
        listed: Any = params if isinstance(params, Tensor) else list(params)
        options = {"constraint": None, **FLAGS, **(flags or {}), "fused": fused, **defaults}
        super().__init__(listed, options)
        if self.needs_sets and not any(isinstance(g, dict) and "constraint" in g for g in listed):
            warnings.warn(_NO_SET.format(type(self).__name__), stacklevel=3)

    def __setstate__(self, state: Packed) -> None:
        super().__setstate__(state)
        self._remember_sets()

    def check_group(self, group: Group) -> None:
        """Refuses a set that is none, weight decay, and options out of range."""
        refuse_decay(group.get("weight_decay", 0))
        constraint = group["constraint"]
        if constraint is not None and not isinstance(constraint, Constraint):
            raise TypeError(
                f"constraint must be a set such as adafw.LInfBall(1.0), or None, got "
                f"{constraint!r}; adafw.torch.constrain makes groups from a class of sets."
            )
        self.check_options(group)
        fast.check_asked(self.kernel, group, type(self).__name__)

    def check_options(self, group: Group) -> None:
        """Refuses options out of range when a group is added."""
        self.check_lr(group)

    def current_set(self, group: Group) -> Constraint | None:
        """The set that a step of this group is made in."""
        return group["constraint"]

    def set_of(self, group: Group, p: Tensor) -> Constraint | None:
        """The set of one parameter of a group."""
        return self.current_set(group)

    def gamma_of(self, group: Group) -> float | None:
        """The step size of the next step, None where it is found in the step."""
        return None

    def shape_factor(self, group: Group, p: Tensor) -> float:
        """What the method multiplies its step by, for the shape of a parameter."""
        return 1.0

    def held_groups(self) -> list[Group]:
        """A group for each parameter with the set it has now, for `gap` and `make_feasible`."""
        return [
            {"params": [p], "names": [plain_name(group, i)], "constraint": self.set_of(group, p)}
            for group in self.param_groups
            for i, p in enumerate(group["params"])
        ]

    def describe(self) -> str:
        """A table: each parameter's set, step size, what both are as (lr, weight_decay), where."""
        return description.table(self)

    def check_lr(self, group: Group) -> float:
        """The learning rate, checked before each step since schedulers change it."""
        return rate_of(group)

    def add_param_group(self, param_group: Group) -> None:
        """Adds a group, checked; the caller's dict is left as it is."""
        group = dict(param_group)
        super().add_param_group(group)
        try:
            self._check_group(group)
        except BaseException:
            self.param_groups.pop()
            raise

    def _remember_sets(self) -> None:
        self._checked = {id(group): group.get("constraint") for group in self.param_groups}

    def _check_group(self, group: Group) -> None:
        """Refuses what does not fit together; asked again when a group gets another set."""
        if group["differentiable"]:
            raise ValueError(
                "differentiable must be False, got True: the steps are made in place, so autograd "
                "cannot go through them."
            )
        if group["capturable"] and isinstance(group["lr"], Tensor):
            raise ValueError("lr must be a number with capturable=True, got a tensor.")
        recipe = group.get("recipe")
        if recipe is not None and recipe != type(self).__name__.lower():
            raise ValueError(
                f"a group made by constrain(recipe={recipe!r}) is for adafw.torch."
                f"{recipe.capitalize()}, got {type(self).__name__}."
            )
        self.check_group(group)
        constraint = group["constraint"]
        for i, p in enumerate(group["params"]):
            if not p.is_floating_point():
                raise TypeError(f"{name_of(group, i)} must be real, got {p.dtype}.")
            sharded.check_placements(p)
            if p.requires_grad:
                self.check_start(p, group, i)
        self._checked[id(group)] = constraint

    def check_start(self, p: Tensor, group: Group, i: int) -> None:
        """Refuses a parameter that begins outside its set."""
        check_start(p, {**group, "constraint": self.current_set(group)}, i)

    def step(self, closure: Closure | None = None) -> Any:
        """One step on every parameter that has a gradient; returns what `closure` returns."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        self._step({p: p.grad for group in self.param_groups for p in group["params"]})
        return loss

    def _step(self, gradients: dict[Tensor, Tensor | None]) -> None:
        """Checks everything, then moves; so an error leaves parameters and state as they were."""
        # Under torch.compile the step runs as it is: kernels, kept memory and counters do not
        # trace. To say so costs 3 us a call, so it is said only where a compiler listens.
        if torch.compiler.is_compiling():
            torch.compiler.disable(self._check_and_move)(gradients)  # type: ignore[no-untyped-call]
        else:
            self._check_and_move(gradients)

    @torch.no_grad()
    def _check_and_move(self, gradients: dict[Tensor, Tensor | None]) -> None:
        whole: list[Work] = []
        parts: list[Work] = []
        found: list[Found] = []
        fresh: list[tuple[Tensor, Group, int, Tensor]] = []
        compiled = self.kernel is not None
        for group in self.param_groups:
            if self._checked.get(id(group), _NEVER) is not group["constraint"]:
                self._check_group(group)
            options = self._options(group)
            # Looked up once a group: small tensors take a few microseconds each.
            buffers, halves = len(self.buffers_of(group)), options["masters"]
            moves, maximize, fused = options["lr"] > 0, group["maximize"], group["fused"]
            compiled = compiled and fused is not False
            for i, p in enumerate(group["params"]):
                g = gradients[p]
                if g is None or p.numel() == 0:
                    continue
                if g.layout is not torch.strided:
                    refuse_sparse(group, i)
                if maximize:
                    g = -g
                if fused:
                    fast.check_taken(p, g, group, i)
                found.append((g, group, i))
                if len(self.state[p]) <= buffers + (halves and p.dtype in masters.HALF):  # and step
                    fresh.append((p, group, i, g))
                if moves:
                    (parts if sharded.is_sharded(p) else whole).append((p, g, options))
        check_finite(found, compiled)
        for new in fresh:
            self._prepare(*new)
        self._move_all(whole, parts)

    def _options(self, group: Group) -> Group:
        """The group's options as they are in this step, and what compiled lists make of them."""
        options = {**group, "lr": self.check_lr(group), "constraint": self.current_set(group)}
        options["numbers"] = fast.numbers(self.kernel, options)
        return options

    def _move_all(self, whole: list[Work], parts: list[Work]) -> None:
        rest = whole if self.kernel is None else self._move_list(whole)
        for p, g, options in self.move_together(rest) if len(rest) > 1 else rest:
            x, g = self._in_precision(p, g)
            self.move_whole(x, g, self.state[p], options)
            self._moved(p, x)
        if parts:
            self._move_parts(parts)

    def _move_list(self, work: list[Work]) -> list[Work]:
        """Moves in one call what there is compiled code for; returns the rest."""
        entries, rest = [], []
        for p, g, options in work:
            state = self.state[p]
            row = self.numbers_of(p, state, options)
            if row is None or options["foreach"] is False:
                rest.append((p, g, options))
            else:
                entries.append((p, g, state, row, options))
        if entries:
            assert self.kernel is not None
            moved, left = lists.move(self.kernel, entries)
            for _, _, state, _, _ in moved:
                state["step"] += 1
            rest += [(p, g, options) for p, g, _, _, options in left]
        return rest

    def numbers_of(self, p: Tensor, state: State, options: Group) -> Numbers | None:
        """What compiled lists must know beside the tensors, None where they do not know the set."""
        numbers = options["numbers"]
        return None if numbers is None else numbers[state["step"] > 0]

    def move_together(self, work: list[Work]) -> list[Work]:
        """Moves what is quicker moved together; returns the rest."""
        return work

    def _in_precision(self, p: Tensor, g: Tensor) -> tuple[Tensor, Tensor]:
        """What is to be moved for p, and the gradient, in the precision of the step."""
        state, dtype = self.state[p], state_dtype(p)
        for name in self.buffers:  # the network may have another precision than at the last step
            if name in state and state[name].dtype is not dtype:
                state[name] = state[name].to(dtype)
        return (p if p.dtype is dtype else masters.to_move(p, state, dtype)), g.to(dtype)

    def _moved(self, p: Tensor, x: Tensor) -> None:
        if x is not p:
            p.copy_(x)
        self.state[p]["step"] += 1

    def metric_of(self, g: Tensor, state: State, options: Group) -> tuple[Tensor, Tensor | None]:
        """(m, h) of a step; changes the state."""
        return self.update.metric(g, state, options)

    def move_whole(self, x: Tensor, g: Tensor, state: State, options: Group) -> None:
        """The update of one tensor that lies here as a whole, in its own dtype."""
        if not fast.move(self.kernel, x, g, state, options):
            self.update(x, g, state, options)

    def _move_parts(self, work: list[Work]) -> None:
        """The same on this rank's parts of sharded parameters, all side by side."""
        jobs: list[sharded.Job | gram.Job | owners.Job | None] = []
        rounded = []
        for p, g, options in cast("list[tuple[DTensor, DTensor, Group]]", work):
            part, dtype = sharded.local(p), state_dtype(p)
            state = {key: sharded.local(value) for key, value in self.state[p].items()}
            x = masters.to_move(part, state, dtype)
            own = sharded.local(sharded.aligned(g, p)).to(dtype)
            m, h = self.metric_of(own, state, options)
            jobs.append(self.move_part(p, x, m, h, sharded.Shard.of(p), options))
            rounded.append((part, x))
            self.state[p]["step"] += 1
        for kind in (sharded, gram, owners):  # in one order on all ranks
            kind.run([job for job in jobs if isinstance(job, kind.Job)])
        for part, x in rounded:
            if x is not part:
                part.copy_(x)

    def move_part(
        self, p: Tensor, x: Tensor, m: Tensor, h: Tensor | None, shard: sharded.Shard,
        options: Group,
    ) -> sharded.Job | gram.Job | owners.Job | None:  # fmt: skip
        """Moves the part x of p at once, or says what the ranks have to do for that together."""
        constraint = options["constraint"]
        if constraint is None:
            self.update.move(x, m, h, None, options)
        elif type(constraint) in self.sharded_sets:
            if self.sharded_sets is not sharded.ENTRYWISE:
                return sharded.Job(shard, x, m, h, constraint, options)
            self.update.move(x, m, h, None, options)
            sharded.clip(x, constraint, shard)
        else:
            return whole_job(self.update, x, m, h, shard, options)
        return None

    def _prepare(self, p: Tensor, group: Group, i: int, g: Tensor | None = None) -> None:
        """Makes the state of a parameter met for the first time.

        Even at lr = 0, on which torch's distributed checkpoints rely. A tensor that is needed only
        later, as a momentum that was 0, begins at the gradient.
        """
        self.check_start(p, group, i)
        state = self.state[p]
        for name in self.buffers_of(group):
            if name not in state:
                state[name] = torch.zeros_like(p, dtype=state_dtype(p))
                if "step" in state and g is not None and group.get("start") != "zero":
                    state[name].copy_(g)
        state.setdefault("step", 0)
        masters.prepare(p, state, group["masters"])

    def buffers_of(self, group: Group) -> tuple[str, ...]:
        """The state tensors that a parameter of this group needs."""
        return self.buffers

    def state_dict(self) -> Packed:
        """As torch's own, each set replaced by its description: names and plain numbers."""
        packed = super().state_dict()
        for group in packed["param_groups"]:
            group["constraint"] = checkpoints.described(group["constraint"])
        return packed

    def load_state_dict(self, state_dict: Packed) -> None:
        """Takes over the state and options; the sets stay those of this optimizer.

        A checkpoint made with other sets or by another optimizer is refused. State is copied and
        keeps its precision, where torch's own would round it to the dtype of the parameter.
        """
        sets = [group["constraint"] for group in self.param_groups]
        taken: list[Group] = []

        def check(_: Optimizer, packed: Packed) -> None:
            checkpoints.check(self, packed, sets)
            taken.append(packed)

        def restore(_: Optimizer) -> None:
            checkpoints.restore(self, taken[0], sets)
            self._remember_sets()

        # After the user's own hooks, which may hand on another dict, and before those that follow.
        hooks = [self.register_load_state_dict_pre_hook(check),
                 self.register_load_state_dict_post_hook(restore, prepend=True)]  # fmt: skip
        try:
            super().load_state_dict(state_dict)
        finally:
            for hook in hooks:
                hook.remove()

    def buffers_known(self) -> tuple[str, ...]:
        """The state tensors that a parameter of any group may have."""
        return self.buffers


_NEVER = object()
_NO_SET = (
    "{} was given no set, so that every step is the unconstrained one; make groups with "
    'adafw.torch.constrain(model, adafw.LInfBall, diameter=6.0), or {{"params": ..., '
    '"constraint": set}}.'
)
