"""Checkpoints of the torch optimizers, damaged: the bits of a whole run, or one error."""

import io
from pathlib import Path

import numpy as np

import adafw
from torture.engine import Engine, Failure
from torture.mutate import damaged, damaged_inside


class TorchStates(Engine):
    """state_dict() through torch.save, changed at random."""

    name = "torch"

    def case(self, rng: np.random.Generator, folder: Path) -> str:
        """Loading a good one goes on bit for bit; a damaged one is refused or stays in the sets."""
        import torch

        kind = ["SFW", "AdaSFW", "AdamSFW"][int(rng.integers(3))]
        family = [adafw.LInfBall, adafw.L2Ball, adafw.L1Ball][int(rng.integers(3))]
        number = int(rng.integers(10**6))
        model, optimizer = _trained(kind, family, number, 3)
        kept = io.BytesIO()
        torch.save([model.state_dict(), optimizer.state_dict()], kept)
        content = kept.getvalue()
        _steps(model, optimizer, number, 3, 6)
        other, second = _trained(kind, family, number, 0)
        weights, state = torch.load(io.BytesIO(content), weights_only=True)
        other.load_state_dict(weights)
        second.load_state_dict(state)
        _steps(other, second, number, 3, 6)
        for a, b in zip(model.parameters(), other.parameters(), strict=True):
            if not torch.equal(a, b):
                raise Failure(f"{kind}: a resumed run is another one")
        bad = (damaged_inside if rng.random() < 0.7 else damaged)(content, rng)
        try:
            weights, state = torch.load(io.BytesIO(bad), weights_only=True)
            second.load_state_dict(state)
        except Exception:
            return "refused"
        # What passes is a state of the right form: steps from it stay inside the sets.
        try:
            _steps(other, second, number, 6, 8)
        except (ValueError, RuntimeError, TypeError, KeyError):
            return "refused late"
        for group in second.param_groups:
            for p in group["params"]:
                held = group["constraint"] is not None and bool(torch.isfinite(p).all())
                if held and not group["constraint"].contains(p.detach(), 1e-3):
                    raise Failure(f"{kind}: a damaged state led out of the set")
        return "read"


def _trained(kind: str, family: type, number: int, steps: int) -> tuple:
    import torch

    torch.manual_seed(number)
    model = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.ReLU(), torch.nn.Linear(5, 2))
    groups = adafw.torch.constrain(model, family, diameter=3.0, show=False)
    adafw.torch.make_feasible(groups)
    optimizer = getattr(adafw.torch, kind)(groups, lr=0.05)
    _steps(model, optimizer, number, 0, steps)
    return model, optimizer


def _steps(model: object, optimizer: object, number: int, first: int, last: int) -> None:
    import torch

    for t in range(first, last):
        draw = torch.Generator().manual_seed(number + t)
        x, y = torch.randn(8, 4, generator=draw), torch.randn(8, 2, generator=draw)
        optimizer.zero_grad()
        ((model(x) - y) ** 2).mean().backward()
        optimizer.step()
