"""The promises about Muon, Lion, Signum and the sets of layers, each shown by a number.

    python benchmarks/lmo_optimizers.py [row ...] [--matrices 10000]

One thread; times are CPU time of the thread, the least of rounds that take turns.
"""

import argparse
import copy
import math
import time

import torch
from torch import nn

import adafw
from adafw.torch import SFW, AdamSFW, Lion, Muon, NewtonSchulzBall, Signum

WIDTH = 768


def draw(shape, seed, dtype=torch.float64):
    return torch.randn(
        shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    ).to(dtype)


def least(sides, rounds):
    """Side -> least seconds of CPU over rounds in which they take turns."""
    times = dict.fromkeys(sides, math.inf)
    for work in sides.values():
        work()
    for _ in range(rounds):
        for name, work in sides.items():
            began = time.thread_time()
            work()
            times[name] = min(times[name], time.thread_time() - began)
    return times


def run(optimizer, params, steps):
    for t in range(steps):
        for i, p in enumerate(params):
            p.grad = draw(p.shape, 1000 * t + i, p.dtype)
        yield [p.grad for p in params]
        optimizer.step()


def muon_exact(arguments):
    """Muon, lmo="exact", against its formula with singular values, float64, 30 steps."""
    worst = 0.0
    for adjust in ("original", "match_rms_adamw"):
        for nesterov in (True, False):
            params = [nn.Parameter(draw(s, 7)) for s in ((24, 16), (16, 40))]
            xs, ms = [p.detach().clone() for p in params], [0.0, 0.0]
            optimizer = Muon(params, 0.02, 0.1, 0.95, nesterov, adjust_lr_fn=adjust, lmo="exact")
            for gs in run(optimizer, params, 30):
                for i, g in enumerate(gs):
                    rows, columns = g.shape
                    a = (
                        0.2 * math.sqrt(max(g.shape))
                        if adjust != "original"
                        else math.sqrt(max(1, rows / columns))
                    )
                    ms[i] = 0.95 * ms[i] + 0.05 * g
                    u, _, vt = torch.linalg.svd(
                        0.05 * g + 0.95 * ms[i] if nesterov else ms[i], full_matrices=False
                    )
                    xs[i] = xs[i] * (1 - 0.002) - 0.02 * a * (u @ vt)
            worst = max(
                worst,
                *((p.detach() - x).abs().max().item() for p, x in zip(params, xs, strict=True)),
            )
    return worst, 1e-8


def muon_torch(arguments):
    """Muon, lmo="torch", against torch.optim.Muon: losses of 50 steps."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 64, bias=False), nn.Tanh(), nn.Linear(64, 8, bias=False))
    other = copy.deepcopy(model)
    x, y = torch.randn(128, 32), torch.randn(128, 8)
    pairs = [
        (model, Muon(model.parameters(), lr=0.02, lmo="torch")),
        (other, torch.optim.Muon(other.parameters(), lr=0.02)),
    ]
    worst = 0.0
    for _ in range(50):
        losses = []
        for net, optimizer in pairs:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(net(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        worst = max(worst, abs(losses[0] - losses[1]))
    return worst, 1e-3


def signs(arguments):
    """Lion and Signum against their formulas, float64, 300 steps."""
    worst = 0.0
    for make, (b1, b2) in (
        (lambda p: Lion(p, 0.01, weight_decay=0.3), (0.9, 0.99)),
        (lambda p: Signum(p, 0.01, weight_decay=0.3), (0.9, 0.9)),
    ):
        params = [nn.Parameter(draw((50, 40), 3))]
        x, m = params[0].detach().clone(), 0.0
        for (g,) in run(make(params), params, 300):
            x = x * (1 - 0.003) - 0.01 * torch.sign(b1 * m + (1 - b1) * g)
            m = b2 * m + (1 - b2) * g
        worst = max(worst, (params[0].detach() - x).abs().max().item())
    return worst, 1e-12


def spectral_optimizer():
    p = nn.Parameter(torch.zeros(WIDTH, WIDTH))
    p.grad = draw(p.shape, 0, torch.float32)
    return SFW([{"params": [p], "constraint": NewtonSchulzBall(8.0)}], lr=0.01)


def fifteen_quintics(g):
    """What the ball's LMO was before: 45 products."""
    x = g / g.abs().amax()
    x = x / torch.linalg.vector_norm(x)
    for _ in range(15):
        a = x @ x.mT
        x = 1.875 * x + (0.375 * (a @ a) - 1.25 * a) @ x
    return -8.0 * x


def spectral_before(arguments):
    """15 quintic steps / a step of SFW on the spectral ball, 768 x 768 (larger is better)."""
    optimizer, g = spectral_optimizer(), draw((WIDTH, WIDTH), 0, torch.float32)
    times = least({"before": lambda: fifteen_quintics(g), "now": optimizer.step}, arguments.rounds)
    return times["before"] / times["now"], 2.3


def spectral_products(arguments):
    """A step of SFW on the spectral ball / its 20 matrix products alone, 768 x 768."""
    optimizer = spectral_optimizer()
    a, out = draw((WIDTH, WIDTH), 1, torch.float32) / WIDTH, torch.empty(WIDTH, WIDTH)

    def products():
        for _ in range(20):
            torch.mm(a, a, out=out)

    times = least({"products": products, "step": optimizer.step}, arguments.rounds)
    return times["step"] / times["products"], 1.25


def hard_matrix(seed):
    """Random, ill-conditioned, of low rank, heavy-tailed, tiny or huge, of any small shape."""
    rng = torch.Generator().manual_seed(seed)
    rows, columns = (int(torch.randint(1, 97, (), generator=rng)) for _ in range(2))
    g = torch.randn(rows, columns, generator=rng, dtype=torch.float64)
    kind = seed % 6
    if kind == 1:  # condition up to 1e12
        u, _, vt = torch.linalg.svd(g, full_matrices=False)
        s = 10 ** (-12 * torch.rand(min(rows, columns), generator=rng, dtype=torch.float64))
        g = (u * s) @ vt
    elif kind == 2:  # low rank
        rank = int(torch.randint(1, 4, (), generator=rng))
        g = g[:, :1].expand(rows, rank) * torch.randn(
            rows, rank, generator=rng, dtype=torch.float64
        )
        g = g @ torch.randn(rank, columns, generator=rng, dtype=torch.float64)
    elif kind == 3:  # heavy tails
        g = g / torch.rand(g.shape, generator=rng, dtype=torch.float64) ** 3
    elif kind == 4:
        g = g.sign()
    scale = 10 ** float(torch.randint(-30, 31, (), generator=rng)) if seed % 2 else 1.0
    g = g / g.abs().amax().clamp(min=1e-300) * scale
    return g.float()


def inside(arguments):
    """Largest singular value / radius - 1 of vertices in float32, over hard matrices."""
    worst, ball = 0.0, NewtonSchulzBall(1.0)
    for seed in range(arguments.matrices):
        v = ball.lmo(hard_matrix(seed))
        worst = max(worst, torch.linalg.matrix_norm(v.double(), 2).item() - 1)
    return worst, 1e-6


def alignment(arguments):
    """1 - <G, V> / <G, polar factor>, the largest over hard matrices."""
    worst, ball = 0.0, NewtonSchulzBall(1.0)
    for seed in range(min(arguments.matrices, 1000)):
        g = hard_matrix(seed)
        v, scale = ball.lmo(g).double(), g.abs().amax().double()
        g = g.double() / scale
        worst = max(worst, 1 + ((g * v).sum() / torch.linalg.svdvals(g).sum()).item())
    return worst, 0.01


def other_sets(arguments):
    """AdamSFW, K = 5, 768 x 768: the slowest of Box, L2, L1, KSparse / LInfBall in plain torch."""
    sets = {
        "LInfBall": adafw.LInfBall(1.0),
        "plain": adafw.LInfBall(1.0),
        "Box": adafw.Box(-1.0, 0.5),
        "L2Ball": adafw.L2Ball(5.0),
        "L1Ball": adafw.L1Ball(50.0),
        "KSparse": adafw.KSparse(0.5, 20_000),
    }
    sides = {}
    for name, constraint in sets.items():
        p = nn.Parameter(torch.zeros(WIDTH, WIDTH))
        p.grad = draw(p.shape, 0, torch.float32)
        fused = False if name == "plain" else None
        group = [{"params": [p], "constraint": constraint}]
        sides[name] = AdamSFW(group, lr=1e-3, fused=fused).step
    times = least(sides, arguments.rounds)
    print("      " + ", ".join(f"{name} {1e3 * t:.1f} ms" for name, t in times.items()))
    rest = [times[name] for name in ("Box", "L2Ball", "L1Ball", "KSparse")]
    print(f"      the slowest over LInfBall's kernel: {max(rest) / times['LInfBall']:.2f}")
    return max(rest) / times["plain"], 2.0


def lion_step(arguments):
    """A step of Lion / AdamW(fused), 3 million weights."""
    sides = {}
    for name, make in (
        ("Lion", lambda p: Lion([p], weight_decay=0.1)),
        ("AdamW", lambda p: torch.optim.AdamW([p], fused=True)),
    ):
        p = nn.Parameter(torch.zeros(3_000_000))
        p.grad = draw(p.shape, 0, torch.float32)
        sides[name] = make(p).step
    times = least(sides, arguments.rounds)
    return times["Lion"] / times["AdamW"], 1.0


ROWS = [
    muon_exact,
    muon_torch,
    signs,
    spectral_before,
    spectral_products,
    inside,
    alignment,
    other_sets,
    lion_step,
]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", nargs="*", choices=[[], *(row.__name__ for row in ROWS)])
    parser.add_argument("--matrices", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for row in ROWS:
        if arguments.rows and row.__name__ not in arguments.rows:
            continue
        value, must = row(arguments)
        more = row is spectral_before
        reached = value >= must if more else value <= must
        sign = ">=" if more else "<="
        verdict = "reached" if reached else "MISSED"
        line = f"{row.__name__:18} {value:10.3g} {sign} {must:<6g} {verdict:8} {row.__doc__}"
        print(line, flush=True)


if __name__ == "__main__":
    main()
