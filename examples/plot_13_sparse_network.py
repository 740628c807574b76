"""
How many weights does a network need?
=====================================

A network is to run on a small chip, so most of its weights should be zero. Pruning cuts weights
after training and hopes. Here the *set* does it while training: in a K-sparse polytope, whose
corners have exactly K non-zero weights, all of one size, every step goes towards such a corner.
Weights that no corner asks for shrink and vanish.

This example needs torch (``pip install 'adafw[torch]'``).
"""

import torch
from matplotlib import pyplot as plt
from sklearn.datasets import load_digits
from torch import nn

import adafw
from adafw.torch import SFW

torch.manual_seed(0)
torch.set_num_threads(1)
images, labels = load_digits(return_X_y=True)
x, y = torch.tensor(images / 16, dtype=torch.float32), torch.tensor(labels)
order = torch.randperm(len(y))
train, test = order[:1300], order[1300:]


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 10))


# %%
# The hidden layer lies in ``KSparse(radius, k)``: no weight above the radius, and their sum at most
# K times that. The other parameters are free. Each K is one short training.


def trained(k, epochs=10):
    model = network()
    hidden, *rest = model.parameters()
    ball = adafw.KSparse(1.0, k)
    with torch.no_grad():
        hidden.mul_(0)  # the centre of the set
    groups = [
        {"params": [hidden], "constraint": ball, "lr": 0.03},
        {"params": rest, "constraint": None, "lr": 0.3},
    ]
    optimizer = SFW(groups, lr=0.03, momentum=0.9)
    batches = torch.Generator().manual_seed(1)
    for epoch in range(epochs):
        for group in optimizer.param_groups[:1]:
            group["lr"] = 0.06 / (1 + epoch)
        for batch in train[torch.randperm(len(train), generator=batches)].split(50):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x[batch]), y[batch]).backward()
            optimizer.step()
    with torch.no_grad():
        right = (model(x[test]).argmax(1) == y[test]).float().mean().item()
    return model[0].weight.detach(), right


results = {k: trained(k) for k in (24, 48, 96, 256, 768)}
for k, (weight, right) in results.items():
    share = (weight.abs() > 0.05).float().mean().item()
    print(f"K = {k:4d}: {share:5.1%} of the hidden weights above 0.05, test accuracy {right:.3f}")

# %%
# Each small picture is what one hidden unit looks at, on the 8 x 8 pixels of a digit. With few
# weights allowed, units become probes of a few pixels, and many units switch off altogether; the
# accuracy hardly notices until K is very small.

figure = plt.figure(figsize=(11, 3.6), layout="constrained")
left, middle, right = figure.subfigures(1, 3, width_ratios=[1, 1.25, 1.25])
ax = left.subplots()
ax.plot(list(results), [accuracy for _, accuracy in results.values()], "o-")
ax.set(xscale="log", xlabel="K (of 3072 weights)", ylabel="test accuracy", ylim=(0.8, 1))
ax.set_xticks(list(results), list(map(str, results)))
ax.minorticks_off()
for part, k in ((middle, 96), (right, 768)):
    weight, _ = results[k]
    part.suptitle(f"hidden units, K = {k}")
    busiest = weight.abs().sum(1).argsort(descending=True)[:24]
    for ax, unit in zip(part.subplots(4, 6).flat, busiest, strict=True):
        ax.imshow(weight[unit].reshape(8, 8), cmap="RdBu", vmin=-0.6, vmax=0.6)
        ax.set_axis_off()
plt.show()
