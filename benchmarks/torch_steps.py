"""The time of one optimizer step against AdamW(fused), one thread, interleaved in one run.

    python benchmarks/torch_steps.py [--rounds 30] [--only imdb cifar 30m ten 200]

`ten` and `200` are so many matrices of 16 x 16, moved together and (foreach=False) one by one.

Gradients are random numbers, new in every round; only `step()` is timed, in CPU time of the thread.
Each round times every optimizer in turn. Printed: the least time over the rounds (other processes
only ever add to it), its ratio to AdamW's, the median of the rounds' ratios, and the target.
"""

import argparse
import statistics
import time

import torch
from torch import nn

from adafw import LInfBall
from adafw.torch import SFW, AdamSFW, AdaSFW, Lion, NewtonSchulzBall, constrain
from adafw.torch.networks import CifarNet, ImdbNet

#: Largest ratio to AdamW(fused) that is asked for.
TARGETS = {
    "imdb": {"AdamSFW": 5.0, "AdamSFW plain torch": 14.0, "SFW": 1.2},
    "cifar": {"AdamSFW": 3.5, "AdamSFW plain torch": 17.0, "SFW": 1.2},
    "30m": {"AdamSFW": 8.0, "AdamSFW plain torch": 21.0, "SFW": 2.0},
}


class Blocks(nn.Module):
    """About 30 million parameters as the matrices and vectors of a small transformer have them."""

    def __init__(self):
        super().__init__()
        width = 640
        self.layers = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 4 * width), nn.Linear(4 * width, width))
            for _ in range(9)
        )


def small(count):
    """So many linear layers of 16 x 16, without biases."""
    return nn.ModuleList(nn.Linear(16, 16, bias=False) for _ in range(count))


MODELS = {
    "imdb": ImdbNet,
    "cifar": CifarNet,
    "30m": Blocks,
    "ten": lambda: small(10),
    "200": lambda: small(200),
}


def optimizers(name):
    """Name -> optimizer on its own copy of the model, with gradients."""

    def prepared(factory, *, sets=LInfBall):
        torch.manual_seed(0)
        model = MODELS[name]()
        for p in model.parameters():
            p.grad = torch.randn_like(p) * 1e-3
        if sets is None:
            return factory(list(model.parameters()))
        return factory(constrain(model, sets, diameter=200.0, rules={"*": sets}, show=False))

    if name in ("ten", "200"):
        pairs = {
            "AdamSFW": (lambda p, **k: AdamSFW(p, lr=1e-3, inner_steps=5, **k), LInfBall),
            "SFW": (lambda p, **k: SFW(p, lr=1e-3, **k), LInfBall),
            "Lion": (lambda p, **k: Lion(p, lr=1e-3, **k), None),
            "SFW spectral": (lambda p, **k: SFW(p, lr=1e-3, **k), NewtonSchulzBall),
        }
        made = {"AdamW(fused)": prepared(lambda p: torch.optim.AdamW(p, fused=True), sets=None)}
        for key, (factory, sets) in pairs.items():
            made[key] = prepared(factory, sets=sets)
            made[f"{key}, one by one"] = prepared(
                lambda p, factory=factory: factory(p, foreach=False), sets=sets
            )
        return made
    return {
        "AdamW(fused)": prepared(lambda p: torch.optim.AdamW(p, lr=1e-3, fused=True), sets=None),
        "AdamSFW": prepared(lambda p: AdamSFW(p, lr=1e-3, inner_steps=5)),
        "AdamSFW plain torch": prepared(lambda p: AdamSFW(p, lr=1e-3, inner_steps=5, fused=False)),
        "AdaSFW K = 2": prepared(lambda p: AdaSFW(p, lr=1e-3)),
        "SFW": prepared(lambda p: SFW(p, lr=1e-3)),
        "SFW plain torch": prepared(lambda p: SFW(p, lr=1e-3, fused=False)),
    }


def milliseconds(optimizer, repeats):
    start = time.thread_time()
    for _ in range(repeats):
        optimizer.step()
    return (time.thread_time() - start) / repeats * 1e3


def renew_gradients(optimizer):
    for group in optimizer.param_groups:
        for p in group["params"]:
            p.grad.normal_(std=1e-3)


def measure(name, rounds):
    """Milliseconds per step: optimizer -> one number per round."""
    candidates = optimizers(name)
    repeats = 1 if name == "30m" else 5
    times = {key: [] for key in candidates}
    for i in range(-1, rounds):
        for key, optimizer in candidates.items():
            renew_gradients(optimizer)
            optimizer.step()  # state is made, kernels are compiled, caches are this optimizer's
            spent = milliseconds(optimizer, repeats)
            if i >= 0:
                times[key].append(spent)
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--only", nargs="+", choices=MODELS, default=list(MODELS))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for name in arguments.only:
        rounds = max(5, arguments.rounds // 6) if name == "30m" else arguments.rounds
        times = measure(name, rounds)
        yardstick = times["AdamW(fused)"]
        for key, spent in times.items():
            ratio, target = min(spent) / min(yardstick), TARGETS.get(name, {}).get(key)
            middle = statistics.median(a / b for a, b in zip(spent, yardstick, strict=True))
            verdict = "" if target is None else ("reached" if ratio <= target else "MISSED")
            asked = "" if target is None else f"<= {target:g}"
            print(
                f"{name:6} {key:24} {min(spent):9.3f} ms {ratio:7.2f}x (median {middle:6.2f}x) "
                f"{asked:8} {verdict}"
            )


if __name__ == "__main__":
    main()
