"""Ways of trainers and users with optimizers: loading twice, hooks, compiling, what was silent."""

import copy
import os
import pickle
import subprocess
import sys
import warnings

import pytest
import torch
from torch import nn

import adafw
from adafw.torch import (
    SFW,
    AdaGrad,
    AdamSFW,
    AdaSFW,
    AMSGrad,
    Lion,
    NewtonSchulzBall,
    PowerNuclearBall,
    Signum,
    make_feasible,
)

OPTIMIZERS = {
    "SFW": lambda p, **k: SFW(p, lr=0.05, **k),
    "AdaSFW": lambda p, **k: AdaSFW(p, lr=0.05, inner_steps=3, **k),
    "AdamSFW": lambda p, **k: AdamSFW(p, lr=0.02, inner_steps=4, **k),
}


def pair(make=OPTIMIZERS["AdamSFW"], constraint=adafw.LInfBall(0.3), seed=0, **options):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 2)).double()
    groups = [{"params": list(model.parameters()), "constraint": constraint}]
    make_feasible(groups)
    return model, make(groups, **options)


def train(model, optimizer, steps=4, seed=1, step=None):
    rng = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        x = torch.randn(8, 6, generator=rng, dtype=torch.float64)
        optimizer.zero_grad()
        (model(x) ** 2).mean().backward()
        (step or optimizer.step)()


def weights(model):
    return torch.cat([p.detach().reshape(-1) for p in model.parameters()])


@pytest.mark.parametrize("kind", OPTIMIZERS)
@pytest.mark.parametrize("pickled", [False, True])
def test_a_checkpoint_is_loaded_as_often_as_one_likes(kind, pickled):
    """Trainers do: once to move the state to a device, once more to resume."""
    model, optimizer = pair(OPTIMIZERS[kind])
    train(model, optimizer)
    saved, at = copy.deepcopy(optimizer.state_dict()), copy.deepcopy(model.state_dict())
    if pickled:
        model, optimizer = pickle.loads(pickle.dumps((model, optimizer)))
    train(model, optimizer)
    end = weights(model)
    for _ in range(3):
        optimizer.load_state_dict(optimizer.state_dict())
        optimizer.load_state_dict(saved)
        model.load_state_dict(at)
        train(model, optimizer)
        assert torch.equal(weights(model), end)


def test_hooks_of_loading_may_hand_on_another_dict():
    model, optimizer = pair()
    train(model, optimizer)
    seen = []

    def doubled(_, packed):
        changed = copy.deepcopy(packed)
        for state in changed["state"].values():
            state["momentum"] *= 2
        return changed

    def look(loaded):
        p = loaded.param_groups[0]["params"][0]
        seen.append((loaded.param_groups[0]["constraint"], loaded.state[p]["momentum"].clone()))

    other, second = pair()
    second.register_load_state_dict_pre_hook(doubled)
    second.register_load_state_dict_post_hook(look)
    second.load_state_dict(optimizer.state_dict())
    for p, q in zip(model.parameters(), other.parameters(), strict=True):
        wanted = 2 * optimizer.state[p]["momentum"]
        assert torch.equal(second.state[q]["momentum"], wanted)
        assert torch.equal(second.state[q]["mean_squares"], optimizer.state[p]["mean_squares"])
    assert seen[0][0] is second.param_groups[0]["constraint"]
    assert torch.equal(seen[0][1], 2 * optimizer.state[model[0].weight]["momentum"])
    second.load_state_dict(optimizer.state_dict())  # our own hooks are gone again, the user's stay
    assert len(seen) == 2
    assert len(second._optimizer_load_state_dict_pre_hooks) == 1


def test_hooks_see_low_precision_state_as_it_was_saved():
    p = nn.Parameter(torch.zeros(3, dtype=torch.bfloat16))
    group = [{"params": [p], "constraint": adafw.LInfBall(1.0)}]
    optimizer = SFW(group, lr=0.1)
    p.grad = torch.tensor([1.0, 0.3, -0.7], dtype=torch.bfloat16)
    for _ in range(3):
        optimizer.step()
    other, dtypes = SFW(group, lr=0.1), []
    other.register_load_state_dict_post_hook(lambda o: dtypes.append(o.state[p]["momentum"].dtype))
    other.load_state_dict(optimizer.state_dict())
    assert dtypes == [torch.float32]
    assert torch.equal(other.state[p]["momentum"], optimizer.state[p]["momentum"])


@pytest.mark.parametrize("fused", [None, False])
@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_a_compiled_step_is_the_same_step(kind, fused):
    plain, compiled = pair(OPTIMIZERS[kind], fused=fused), pair(OPTIMIZERS[kind], fused=fused)
    train(*plain)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own, on what it does not trace
        train(*compiled, step=torch.compile(compiled[1].step, backend="eager"))
    assert torch.equal(weights(plain[0]), weights(compiled[0]))


@pytest.mark.parametrize("kind", [*OPTIMIZERS, "AdaGrad"])
def test_maximize_is_descent_on_the_negative(kind):
    make = OPTIMIZERS.get(kind, lambda p, **k: AdaGrad(p, lr=0.05, **k))
    ends = []
    for maximize in (False, True):
        model, optimizer = pair(make, maximize=maximize)
        for _ in range(3):
            for i, p in enumerate(model.parameters()):
                rng = torch.Generator().manual_seed(i)
                g = torch.randn(p.shape, generator=rng, dtype=p.dtype)
                p.grad = -g if maximize else g
            before = [p.grad.clone() for p in model.parameters()]
            optimizer.step()
            assert all(
                torch.equal(p.grad, g) for p, g in zip(model.parameters(), before, strict=True)
            )
        ends.append(weights(model))
    assert torch.equal(*ends)


def test_options_spelled_as_torch_s_are_taken_or_refused_with_a_reason():
    for flags in ({"foreach": True}, {"foreach": False}, {"capturable": True}):
        _, optimizer = pair(**flags)
        assert optimizer.param_groups[0].items() >= flags.items()
    with pytest.raises(ValueError, match="differentiable must be False, got True: the steps are"):
        pair(differentiable=True)
    with pytest.raises(ValueError, match="lr must be a number with capturable=True, got a tensor"):
        pair(lambda p, **k: SFW(p, lr=torch.tensor(0.1), **k), capturable=True)
    with pytest.raises(TypeError, match="AdamSFW has no option amsgrad"):
        pair(amsgrad=True)


def test_fused_where_there_is_no_kernel_is_refused():
    with pytest.raises(
        ValueError, match=r"fused=True needs .* not for Simplex\(radius=1.0\); leav"
    ):
        pair(constraint=adafw.Simplex(1.0), fused=True)
    with pytest.raises(ValueError, match="there is none with rescale='gradient'"):
        pair(OPTIMIZERS["SFW"], rescale="gradient", fused=True)
    p = nn.Parameter(torch.zeros(4, 3).t())
    p.grad = torch.ones(3, 4)
    optimizer = AdamSFW([{"params": [p], "constraint": adafw.LInfBall(1.0)}], lr=0.1, fused=True)
    with pytest.raises(ValueError, match=r"fused=True needs contiguous .* parameter 0 of shape"):
        optimizer.step()
    assert not p.any()
    model, optimizer = pair(fused=True)
    train(model, optimizer)


def test_a_smaller_set_put_into_a_group_is_checked_before_anything_moves():
    model, optimizer = pair()
    train(model, optimizer)
    before = weights(model)
    optimizer.param_groups[0]["constraint"] = adafw.LInfBall(1e-3)
    with pytest.raises(ValueError, match=r"starts outside LInfBall\(radius=0.001\): its norm is"):
        train(model, optimizer, 1)
    assert torch.equal(weights(model), before)
    optimizer.param_groups[0]["constraint"] = adafw.LInfBall(0.5)  # larger: taken
    train(model, optimizer, 1)
    optimizer.param_groups[0]["constraint"] = adafw.LInfBall
    with pytest.raises(TypeError, match="constraint must be a set such as"):
        train(model, optimizer, 1)


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_no_set_at_all_is_warned_of_unless_it_is_said(kind):
    model = nn.Linear(2, 2)
    with pytest.warns(UserWarning, match=f"{kind} was given no set, so that every step is the un"):
        OPTIMIZERS[kind](model.parameters())
    OPTIMIZERS[kind]([{"params": model.parameters(), "constraint": None}])  # said: no warning


@pytest.mark.parametrize("decay", [0.1, 2])
def test_the_refusal_of_weight_decay_names_the_radius(decay):
    radius = f"{1 / decay:g}"
    with pytest.raises(ValueError, match=f"take a set of radius {radius}, or Muon, Scion, Lion or"):
        pair(weight_decay=decay)


KERNEL_RUN = """
import sys
from numba.core import caching
# As where neither the sources nor the user's cache directory can be written.
for locator in caching._CacheLocator.__subclasses__():
    locator.from_function = classmethod(lambda cls, function, path: None)
import torch, adafw
from adafw.torch import AdamSFW, kernels
p = torch.nn.Parameter(torch.zeros(3))
p.grad = torch.ones(3)
AdamSFW([{"params": [p], "constraint": adafw.LInfBall(1.0)}], lr=0.1, fused=True).step()
assert p.abs().max() > 0
"""


def test_kernels_run_where_no_cache_can_be_written():
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run([sys.executable, "-c", KERNEL_RUN], env=environment, check=False,
                         capture_output=True, text=True, timeout=300)  # fmt: skip
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_a_checkpoint_from_before_there_were_such_options_is_taken(kind):
    flags = ("maximize", "foreach", "capturable", "differentiable", "fused", "masters")
    model, optimizer = pair(OPTIMIZERS[kind])
    train(model, optimizer)
    saved = copy.deepcopy(optimizer.state_dict())
    for flag in flags:
        del saved["param_groups"][0][flag]
    other, resumed = pair(OPTIMIZERS[kind], masters=True, seed=5)
    other.load_state_dict(model.state_dict())
    resumed.load_state_dict(saved)
    assert {flag: resumed.param_groups[0][flag] for flag in flags} == {
        "maximize": False, "foreach": None, "capturable": False, "differentiable": False,
        "fused": None, "masters": True,
    }  # fmt: skip
    train(model, optimizer, seed=2)
    train(other, resumed, seed=2)
    assert torch.equal(weights(model), weights(other))


@pytest.mark.parametrize("kind", [SFW, AdaSFW, AdamSFW])
def test_a_loaded_state_is_laid_out_as_its_parameter(kind):
    """Which compiled updates need: they walk through both side by side."""
    rng = torch.Generator().manual_seed(0)
    x, g = (0.1 * torch.randn(3, 4, 2, 2, generator=rng) for _ in range(2))
    made = []
    for layout in (torch.channels_last, torch.contiguous_format):
        p = nn.Parameter(x.clone().contiguous(memory_format=layout))
        made.append((p, kind([{"params": [p], "constraint": adafw.LInfBall(1.0)}], lr=0.1)))
    (p, first), (q, second) = made
    p.grad = g.clone()
    first.step()
    second.load_state_dict(first.state_dict())
    for name in second.buffers:
        assert second.state[q][name].is_contiguous()
        assert torch.equal(second.state[q][name], first.state[p][name])
        assert second.state[q][name].data_ptr() != first.state[p][name].data_ptr()


def test_a_group_is_checked_when_it_comes_and_when_it_gets_another_set():
    """Not at every step: that would take longer than a small step does."""

    class Counted(SFW):
        checked = 0

        def check_group(self, group):
            Counted.checked += 1
            super().check_group(group)

    p = nn.Parameter(torch.zeros(3))
    optimizer = Counted([{"params": [p], "constraint": adafw.LInfBall(1.0)}], lr=0.1)
    p.grad = torch.ones(3)
    for _ in range(3):
        optimizer.step()
    assert Counted.checked == 1
    optimizer.param_groups[0]["constraint"] = adafw.L2Ball(1.0)
    for _ in range(3):
        optimizer.step()
    assert Counted.checked == 2
    again = pickle.loads(pickle.dumps(optimizer.state_dict()))
    optimizer.load_state_dict(again)
    optimizer.step()
    assert Counted.checked == 2
    optimizer.param_groups[0]["constraint"] = adafw.LInfBall(1e-3)
    with pytest.raises(ValueError, match="starts outside"):
        optimizer.step()


def test_a_group_that_is_added_stays_the_callers():
    p, q = (nn.Parameter(torch.zeros(2)) for _ in range(2))
    optimizer = SFW([{"params": [p], "constraint": adafw.LInfBall(1.0)}], lr=0.1)
    given = {"params": [q], "constraint": adafw.L2Ball(1.0)}
    optimizer.add_param_group(given)
    assert given == {"params": [q], "constraint": adafw.L2Ball(1.0)}
    assert optimizer.param_groups[1]["lr"] == 0.1
    wrong = {"params": [nn.Parameter(torch.full((2,), 9.0))], "constraint": adafw.L2Ball(1.0)}
    with pytest.raises(ValueError, match="starts outside"):
        optimizer.add_param_group(wrong)
    assert [group["params"] for group in optimizer.param_groups] == [[p], [q]]


@pytest.mark.parametrize("dtype", [torch.complex64, torch.int64])
def test_parameters_that_are_not_real_are_refused_by_name(dtype):
    p = nn.Parameter(torch.zeros(2, dtype=dtype), requires_grad=False)
    group = {"params": [p], "names": ["w"], "constraint": None}
    with pytest.raises(TypeError, match=f"parameter 'w' must be real, got {dtype}"):
        SFW([group], lr=0.1)


def test_names_may_come_with_the_parameters():
    """As `named_parameters()` yields them, in place of those that `constrain` gives."""
    named = [
        ("layer.b", nn.Parameter(torch.zeros(2))),
        ("layer.w", nn.Parameter(3 * torch.ones(2))),
    ]
    with pytest.raises(ValueError, match=r"parameter 'layer\.w' starts outside"):
        SFW([{"params": named, "constraint": adafw.LInfBall(1.0)}], lr=0.1)
    optimizer = SFW([{"params": named, "constraint": adafw.LInfBall(4.0)}], lr=0.1)
    lines = optimizer.describe().splitlines()[1:]
    assert [line.split()[0] for line in lines] == ["layer.b", "layer.w"]


def test_a_start_is_held_to_the_set_as_large_as_it_is_used():
    ball = adafw.LInfBall(1.0)
    for size, scale, taken in ((1.5, 2.0, True), (1.5, 1.0, False), (0.9, 0.5, False)):
        p = nn.Parameter(torch.full((2,), size))
        group = {"params": [p], "constraint": ball, "radius_scale": scale}
        if taken:
            assert SFW([group], lr=0.1).set_of(group, p) == adafw.LInfBall(2.0)
        else:
            with pytest.raises(ValueError, match=rf"outside LInfBall\(radius={scale}\): its norm"):
                SFW([group], lr=0.1)


def test_projected_steps_need_a_projection_in_a_metric():
    p = nn.Parameter(torch.zeros(3, 2))
    for ball in (PowerNuclearBall(1.0), NewtonSchulzBall(1.0)):  # Euclidean projections only
        assert ball.projection == "euclidean"
        for make in (AdaGrad, AMSGrad):
            with pytest.raises(TypeError, match="needs a set with a projection in a diagonal"):
                make([{"params": [p], "constraint": ball}], lr=0.1)


@pytest.mark.parametrize(
    "make",
    [lambda p, b: SFW(p, lr=0.3, betas=b), lambda p, b: Lion(p, 0.3, b)],
    ids=["SFW", "Lion"],
)
def test_betas_may_be_a_list_as_a_file_holds_them(make):
    ends = []
    for betas in ((0.9, 0.4), [0.9, 0.4]):
        p = nn.Parameter(torch.zeros(2))
        optimizer = make([{"params": [p], "constraint": None}], betas)
        for g in ([1.0, -1.0], [-3.0, 0.2]):
            p.grad = torch.tensor(g)
            optimizer.step()
        ends.append(p.detach())
    assert torch.equal(*ends)


def test_a_checkpoint_without_sets_is_not_taken_for_one_with_them():
    p = nn.Parameter(torch.zeros(2))
    free, held = (SFW([{"params": [p], "constraint": c}], lr=0.1)
                  for c in (None, adafw.LInfBall(1.0)))  # fmt: skip
    with pytest.raises(ValueError, match=r"group 0 is held to LInfBall\(radius=1.0\), but"):
        held.load_state_dict(free.state_dict())
    with pytest.raises(ValueError, match="group 0 is held to None, but"):
        free.load_state_dict(held.state_dict())


def test_a_checkpoint_of_another_optimizer_is_refused_whatever_it_holds():
    """Before its first step no state tells it apart, and one parameter's state is enough."""
    ps = [nn.Parameter(torch.zeros(2)) for _ in range(2)]
    group = {"params": ps, "constraint": adafw.LInfBall(1.0)}
    adaptive, plain = AdaSFW([group], lr=0.1), SFW([group], lr=0.1)
    with pytest.raises(ValueError, match=r"not made by AdaSFW: .* in inner_steps, max_step"):
        adaptive.load_state_dict(plain.state_dict())
    for p in ps:
        p.grad = torch.ones(2)
    plain.step()
    for place in (0, 1):
        saved = plain.state_dict()
        saved["state"][place] = {**saved["state"][place], "velocity": torch.zeros(2)}
        with pytest.raises(ValueError, match="not made by SFW: parameter group 0 differs in velo"):
            plain.load_state_dict(saved)


def test_a_checkpoint_knows_the_set_whatever_it_is_scaled_by():
    p = nn.Parameter(torch.zeros(2))
    group = {"params": [p], "constraint": adafw.LInfBall(1.0)}
    scaled = SFW([group], lr=0.1, radius_scale=0.5)
    saved = scaled.state_dict()
    assert saved["param_groups"][0]["constraint"] == adafw.LInfBall(1.0).describe()
    plain = SFW([group], lr=0.1)
    plain.load_state_dict(saved)
    assert plain.param_groups[0]["radius_scale"] == 0.5
    scaled.load_state_dict(saved)


def test_one_group_with_a_set_is_enough_to_show_that_others_have_none():
    p, q = (nn.Parameter(torch.zeros(2)) for _ in range(2))
    groups = [{"params": [p]}, {"params": [q], "constraint": adafw.LInfBall(1.0)}]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        optimizer = SFW(groups, lr=0.1)
    assert [group["constraint"] for group in optimizer.param_groups] == [
        None, adafw.LInfBall(1.0)
    ]  # fmt: skip
    with pytest.warns(UserWarning, match="SFW was given no set"):
        SFW([{"params": [p]}, {"params": [q]}], lr=0.1)


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_a_learning_rate_may_be_a_tensor(kind):
    ends = []
    for rate in (0.05, torch.tensor(0.05, dtype=torch.float64)):
        model, optimizer = pair(OPTIMIZERS[kind])
        optimizer.param_groups[0]["lr"] = rate
        optimizer._check_group(optimizer.param_groups[0])
        train(model, optimizer)
        ends.append(weights(model))
    assert torch.equal(*ends)


@pytest.mark.parametrize("fused", [None, False])
@pytest.mark.parametrize(
    "make",
    [
        lambda bad: torch.tensor([0.0, 1.0, bad]),
        lambda bad: torch.tensor([0.0, 1.0, bad], dtype=torch.float64),
        lambda bad: torch.tensor([0.0, 9.0, 1.0, 9.0, bad])[::2],
    ],
    ids=["longer", "wider", "strided"],
)
@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
def test_a_gradient_that_is_not_finite_is_found_in_any_company(make, bad, fused):
    gradients = [torch.ones(2), make(bad), torch.ones(1)]
    params = [nn.Parameter(torch.zeros(g.shape, dtype=g.dtype)) for g in gradients]
    optimizer = SFW([{"params": params, "constraint": adafw.LInfBall(1.0)}], lr=0.1, fused=fused)
    for p, g in zip(params, gradients, strict=True):
        p.grad = g
    with pytest.raises(ValueError, match=r"gradient of parameter 1 of shape \(3,\) must be finite"):
        optimizer.step()
    assert not any(p.any() for p in params)


def test_no_more_is_kept_than_a_step_needs():
    for options, kept in (({"momentum": 0.0}, set()), ({"momentum": 0.5}, {"momentum"}),
                          ({"betas": (0.0, 0.0)}, set()), ({"betas": (0.0, 0.5)}, {"momentum"}),
                          ({"betas": (0.5, 0.0)}, {"momentum"})):  # fmt: skip
        for constraint in (adafw.LInfBall(1.0), adafw.L2Ball(1.0), None):
            p = nn.Parameter(torch.zeros(3))
            optimizer = SFW([{"params": [p], "constraint": constraint}], lr=0.1, **options)
            p.grad = torch.ones(3)
            optimizer.step()
            assert set(optimizer.state[p]) == {"step", *kept}
    for make, kept in ((lambda p: Signum(p, momentum=0.0), set()),
                       (lambda p: Signum(p, momentum=0.5), {"momentum"}),
                       (lambda p: Lion(p, betas=(0.0, 0.0)), set()),
                       (lambda p: Lion(p, betas=(0.0, 0.5)), {"momentum"})):  # fmt: skip
        p = nn.Parameter(torch.zeros(3))
        optimizer = make([p])
        p.grad = torch.ones(3)
        optimizer.step()
        assert set(optimizer.state[p]) == {"step", *kept}


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_a_loaded_state_goes_where_its_parameter_is(kind):
    states = []
    for device in ("cpu", "meta"):
        p = nn.Parameter(torch.zeros(3, device=device))
        optimizer = OPTIMIZERS[kind]([{"params": [p], "constraint": adafw.LInfBall(1.0)}])
        if device == "cpu":
            p.grad = torch.ones(3)
            optimizer.step()
            saved = optimizer.state_dict()
        else:
            optimizer.load_state_dict(saved)
        states.append(optimizer.state[p])
    for name in optimizer.buffers:
        assert [state[name].device.type for state in states] == ["cpu", "meta"]


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_a_step_before_any_gradient_does_nothing(kind):
    model, optimizer = pair(OPTIMIZERS[kind])
    before = weights(model)
    assert optimizer.step() is None
    assert torch.equal(weights(model), before)
    assert not any(optimizer.state.values())
