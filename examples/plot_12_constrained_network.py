"""
A network with a set for every layer
====================================

A network that reads digits should not react wildly to a small change of its input, and its largest
layer should be cheap to store. Weight decay hopes for both; a *set* for each layer guarantees them:
the convolutions' spectral norms stay below 1.5 at every step, and the hidden layer lies in an l1
ball, which leaves it few weights.

The network is trained three times with the same batches: with AdamW, with AdamSFW in linf balls
for all layers, and with AdamSFW under such rules by layer.
It needs torch (``pip install 'adafw[torch]'``)::

    python plot_12_constrained_network.py [epochs]
"""

import sys

import torch
from matplotlib import pyplot as plt
from sklearn.datasets import load_digits
from torch import nn

import adafw
from adafw.torch import AdamSFW, NewtonSchulzBall, Rule, constrain, gap, make_feasible
from adafw.torch.batches import TensorBatches
from adafw.torch.measures import evaluate
from adafw.torch.training import train

torch.set_num_threads(1)
epochs = int(sys.argv[1]) if len(sys.argv) > 1 else 8
images, labels = load_digits(return_X_y=True)
x = torch.tensor(images, dtype=torch.float32).reshape(-1, 1, 8, 8) / 16
y = torch.tensor(labels)
order = torch.randperm(len(y), generator=torch.Generator().manual_seed(0))
x, y = x[order], y[order]
train_set, test_set = (x[:1400], y[:1400]), (x[1400:], y[1400:])
loss_fn = nn.CrossEntropyLoss()


def network():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 16, 3),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(128, 64),
        nn.ReLU(),
        nn.Linear(64, 10),
    )


# %%
# Three optimizers. ``constrain`` prints which parameter got which set; ``make_feasible`` moves the
# initial weights into their sets where they are outside.


def adamw(model):
    return torch.optim.AdamW(model.parameters(), lr=2e-3), []


def linf(model):
    groups = constrain(model, adafw.LInfBall, diameter=20.0, show=False)
    return AdamSFW(groups, lr=2e-3), groups


def by_layer(model):
    rules = {
        "*.bias": None,
        nn.Conv2d: Rule(NewtonSchulzBall, radius=1.5),
        "6.weight": Rule(adafw.L1Ball, radius=60.0),
    }
    groups = constrain(model, adafw.LInfBall, diameter=20.0, rules=rules)
    print("moved into their sets:", make_feasible(groups))
    for group in groups:
        if isinstance(group["constraint"], adafw.L1Ball):  # each inner step moves one weight
            group.update(inner_steps=20, lr=3e-2)
    return AdamSFW(groups, lr=1e-2), groups


# %%
# Training, and what came of it: accuracy, the spectral norms of the convolutions, how many weights
# of the hidden layer matter, and the exact Frank-Wolfe gap, which only constrained problems have.


def right(out, target):
    return out.argmax(1) == target


results, weights = {}, {}
for name, make in {"AdamW": adamw, "AdamSFW, linf": linf, "AdamSFW, by layer": by_layer}.items():
    model = network()
    optimizer, groups = make(model)

    def inside(epoch, groups=groups):
        for group in groups:
            for p in group["params"]:
                flat = p.detach().reshape(len(p), -1) if p.dim() > 2 else p.detach()
                assert group["constraint"] is None or group["constraint"].contains(flat)

    batches = TensorBatches(*train_set, batch_size=50, seed=1)
    train(model, optimizer, loss_fn, batches, epochs, after_epoch=inside)
    _, accuracy = evaluate(model, loss_fn, [test_set], right)
    kernels = [model[i].weight.detach().flatten(1) for i in (0, 2)]
    spectral = [float(torch.linalg.matrix_norm(w, 2)) for w in kernels]
    hidden = model[6].weight.detach().abs()
    matter = float((hidden > 1e-2 * hidden.max()).float().mean())
    results[name] = accuracy, spectral, matter
    weights[name] = model[6].weight.detach().numpy()
    line = f"{name:18} test accuracy {accuracy:.3f}, spectral norms {spectral[0]:.2f} and "
    line += f"{spectral[1]:.2f}, hidden weights above 1 % of the largest {matter:.0%}"
    if groups:
        line += f", gap {gap(model, loss_fn, [train_set], groups):.3g}"
    print(line)

# %%
# The hidden layer's weights, one row for each unit. AdamW uses all of them a little; the linf ball
# caps the largest; the l1 ball leaves a few, and whole units empty. All three read digits about
# equally well, and only the last two can promise anything about their weights.

figure, axes = plt.subplots(3, 1, figsize=(9, 6.4), layout="constrained")
for ax, (name, weight) in zip(axes, weights.items(), strict=True):
    shown = ax.imshow(weight, cmap="RdBu", vmin=-0.5, vmax=0.5, aspect="auto")
    accuracy, spectral, matter = results[name]
    ax.set_title(
        f"{name}: accuracy {accuracy:.3f}, spectral norms {spectral[0]:.1f} and {spectral[1]:.1f}, "
        f"{matter:.0%} of the weights matter",
        fontsize=10,
    )
    ax.set(ylabel="unit", xticks=[])
figure.colorbar(shown, ax=axes, shrink=0.6)
plt.show()
