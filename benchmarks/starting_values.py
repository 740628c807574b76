"""Where to start: learning rates and sizes of sets, searched on Fashion-MNIST images.

    python benchmarks/starting_values.py [family ...] [--seeds 1]

One epoch of 100 batches of 128 on a perceptron of two hidden layers, every tensor in its set; the
error on 2 560 images held out. Six learning rates, half a power of ten apart, at three sizes (l2
diameters in Glorot norms), for SFW and AdamSFW; three for SFW(rescale="gradient"). What comes out
stands in docs/torch.md and, as first tries, in adafw.torch.starts.
"""

import argparse
import itertools
import time

import torch

import adafw
from adafw.experiments.networks.data import load
from adafw.experiments.networks.models import FashionNet
from adafw.torch import SFW, AdamSFW, NewtonSchulzBall, PowerNuclearBall, constrain, make_feasible

FAMILIES = {
    "LInfBall": adafw.LInfBall,
    "L2Ball": adafw.L2Ball,
    "L1Ball": adafw.L1Ball,
    "NewtonSchulzBall": NewtonSchulzBall,
    "PowerNuclearBall": PowerNuclearBall,
    "RowBall": adafw.RowBall,
    "ColumnBall": adafw.ColumnBall,
    "RMSBall": adafw.RMSBall,
}
DIAMETERS = (6.0, 20.0, 60.0)
METHODS = {
    "SFW": (lambda g, lr: SFW(g, lr=lr), [10 ** (i / 2) for i in range(-7, -1)]),
    "AdamSFW": (lambda g, lr: AdamSFW(g, lr=lr), [10 ** (i / 2) for i in range(-7, -1)]),
    "gradient": (lambda g, lr: SFW(g, lr=lr, rescale="gradient"), [0.1, 0.3, 1.0]),
}


def images(seed):
    data = load({"name": "fashion", "source": "any", "rows": 15_360, "test_rows": 10}, "FashionNet")
    x, y = (torch.as_tensor(data.train[key]) for key in ("x", "y"))
    x = (x.float() / 255 - 0.2860) / 0.3530
    order = torch.randperm(len(y), generator=torch.Generator().manual_seed(seed))
    return data.about, x[order], y[order].long()


def error(family, diameter, make, lr, seed, x, y):
    torch.manual_seed(seed)
    model = FashionNet(64)
    # Vectors have no singular values; their sets are signs in all of these.
    rules = {"*.bias": adafw.LInfBall(1.0)}
    groups = constrain(model, family, diameter=diameter, rules=rules, show=False)
    make_feasible(groups)
    optimizer = make(groups, lr)
    for i in range(0, 12_800, 128):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x[i : i + 128]), y[i : i + 128])
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        return 1 - (model(x[12_800:]).argmax(1) == y[12_800:]).double().mean().item()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("families", nargs="*", default=list(FAMILIES))
    parser.add_argument("--seeds", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    about, x, y = images(0)
    print(about)
    began = time.process_time()
    for name, diameter in itertools.product(arguments.families, DIAMETERS):
        cells = []
        for label, (make, rates) in METHODS.items():
            found = {
                lr: sum(error(FAMILIES[name], diameter, make, lr, seed, x, y)
                        for seed in range(arguments.seeds)) / arguments.seeds
                for lr in rates
            }  # fmt: skip
            best = min(found, key=found.get)
            near = [f"{lr:.2g}" for lr in rates if found[lr] <= found[best] + 0.01]
            cells.append(f"{label} {best:.2g}: {found[best]:.3f} (within 0.01: {', '.join(near)})")
        print(f"{name:17} {diameter:3g}  " + "; ".join(cells), flush=True)
    print(f"{time.process_time() - began:.0f} CPU seconds")


if __name__ == "__main__":
    main()
