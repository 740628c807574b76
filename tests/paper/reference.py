"""The paper's algorithms, written a second time: dense arrays, no class, no line shared with src.

Each function follows the paper and the conventions of docs/design.md (index stream, batch sizes)
and returns all iterates x_0 .. x_T.
"""

import math

import numpy as np

OFFSET = 1e-8


def losses(name):
    """(value, slope) of the mean loss's terms."""
    if name == "squared":
        return (lambda z, y: (y - z) ** 2), (lambda z, y: -2 * (y - z))
    if name == "logistic":
        return (
            lambda z, y: np.log1p(np.exp(-np.abs(z))) + np.maximum(0, -y * z),
            lambda z, y: -y / (1 + np.exp(y * z)),
        )
    if name == "squared_hinge":
        return (
            lambda z, y: np.where(1 - y * z > 0, (1 - y * z) ** 2, 0),
            lambda z, y: np.where(1 - y * z > 0, -2 * y * (1 - y * z), 0),
        )
    raise KeyError(name)


def lmo(ball, radius, g):
    v = np.zeros_like(g)
    if ball == "l1":
        i = int(np.argmax(np.abs(g)))
        v[i] = -radius * np.sign(g[i])
    elif ball == "linf":
        v = -radius * np.sign(g)
    elif ball == "l2":
        v = -radius * g / np.sqrt((g**2).sum())
    return v


def project(ball, radius, z, h):
    """min sum h_i (x_i - z_i)^2, the multiplier by bisection to the last bit."""
    if ball == "linf":
        return np.minimum(np.maximum(z, -radius), radius)

    def at(multiplier):
        if ball == "l1":
            return np.sign(z) * np.maximum(np.abs(z) - multiplier / h, 0)
        return h * z / (h + multiplier)

    def size(x):
        return np.abs(x).sum() if ball == "l1" else np.sqrt((x**2).sum())

    if size(z) <= radius:
        return z
    low, high = 0.0, 1.0
    while size(at(high)) > radius:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if size(at(middle)) > radius else (low, middle)
    return at(high)


def estimates(name, A, y, slope, seed, batch_size=None):
    """A generator: send x_t, receive g_t."""
    m, n = A.shape
    rng = np.random.default_rng(seed)

    def gradient(x, batch):
        rows = A[batch]
        return rows.T @ slope(rows @ x, y[batch]) / len(batch)

    everything = np.arange(m)
    percent = max(1, m // 100)
    alpha, sum_alpha = np.zeros(m), np.zeros(n)
    x = yield None
    t = 0
    snapshot = snapshot_g = last_x = last_g = s = None
    while True:
        if name == "full":
            g = gradient(x, everything)
        elif name == "minibatch":
            b = batch_size or min(m, max(1, math.ceil(t**2 / math.sqrt(m))))
            g = gradient(x, rng.integers(0, m, size=b) if b < m else everything)
        elif name == "percent":
            g = gradient(x, rng.integers(0, m, size=batch_size or percent))
        elif name == "svrf":
            if t in [2 ** (k + 4) - 2**4 for k in range(20)]:
                snapshot, snapshot_g = x, gradient(x, everything)
                g = snapshot_g
            else:
                b = batch_size or min(max(1, m // 10), max(1, t))
                batch = rng.integers(0, m, size=b)
                g = snapshot_g + gradient(x, batch) - gradient(snapshot, batch)
        elif name == "spider":
            if t + 1 in [2**k for k in range(20)]:
                g = gradient(x, everything)
            else:
                b = batch_size or min(m, 2 ** math.floor(math.log2(t + 1)))
                batch = rng.integers(0, m, size=b)
                g = last_g + gradient(x, batch) - gradient(last_x, batch)
        elif name == "orgfw":
            batch = rng.integers(0, m, size=batch_size or percent)
            g = gradient(x, batch)
            if t > 0:
                rho = (t + 1) ** (-2 / 3)
                g = g + (1 - rho) * (last_g - gradient(last_x, batch))
        elif name == "csfw":
            for i in sorted(set(rng.integers(0, m, size=batch_size or percent).tolist())):
                fresh = slope(A[i] @ x, y[i]) / m
                sum_alpha = sum_alpha + (fresh - alpha[i]) * A[i]
                alpha[i] = fresh
            g = sum_alpha
        elif name == "saga":
            batch = sorted(set(rng.integers(0, m, size=batch_size or percent).tolist()))
            fresh = np.array([slope(A[i] @ x, y[i]) / m for i in batch])
            g = A.T @ alpha + m / len(batch) * (fresh - alpha[batch]) @ A[batch]
            alpha[batch] = fresh
        elif name == "momentum":
            rho = min(1.0, 4 / (t + 8) ** (2 / 3))
            g = rho * gradient(x, rng.integers(0, m, size=batch_size or percent))
            g = g + ((1 - rho) * last_g if t > 0 else 0)
        elif name in ("lsvrg", "page"):
            b = batch_size or percent
            p = b / m if name == "lsvrg" else b / (m + b)
            c = rng.integers(0, 2**53) / 2**53
            if t == 0 or c < p:
                g = gradient(x, everything)
                snapshot, snapshot_g = x, g
            else:
                batch = rng.integers(0, m, size=b)
                old_x, old_g = (snapshot, snapshot_g) if name == "lsvrg" else (last_x, last_g)
                g = gradient(x, batch) - gradient(old_x, batch) + old_g
        elif name == "lu_freund":
            b = batch_size or percent
            if t == 0:
                s = A @ x
            else:
                eta, gamma = 2 * m / b / (2 * m / b + t), 2 / (t + 1)
                vertex = (x - (1 - gamma) * last_x) / gamma
                for i in set(rng.integers(0, m, size=b).tolist()):
                    s[i] = (1 - eta) * s[i] + eta * (A[i] @ vertex)
            g = A.T @ slope(s, y) / m
        last_x, last_g = x, g
        t += 1
        x = yield g


def iterates(
    A, y, loss, ball, radius, *, estimate, step, T, seed=0, batch_size=None,
    eta=None, K=5, metric="adagrad", betas=(0.9, 0.99), gamma=lambda t: 2 / (t + 2), bound=1.0,
):  # fmt: skip
    """x_0 .. x_T of Template 1 ("fw"), Template 3 ("adaptive") or Algorithm 2 ("projected")."""
    n = A.shape[1]
    stream = estimates(estimate, A, y, losses(loss)[1], seed, batch_size)
    next(stream)
    x = np.zeros(n)
    xs = [x]
    S = np.zeros(n)  # AdaGrad's sum of squares
    m, s, s_max = np.zeros(n), np.zeros(n), np.zeros(n)  # Algorithm 7
    for t in range(T):
        g = stream.send(x)
        if step == "fw":
            x = x + gamma(t) * (lmo(ball, radius, g) - x)
            xs.append(x)
            continue
        if metric == "adagrad":
            S = S + g**2
            H, linear = OFFSET + np.sqrt(S), g
        else:
            m = betas[0] * m + (1 - betas[0]) * g
            s = betas[1] * s + (1 - betas[1]) * g**2
            s_max = np.maximum(s_max, s)
            H, linear = OFFSET + np.sqrt(s_max), m
        if step == "projected":
            x = project(ball, radius, x - eta * linear / H, H)
        else:
            z = x
            for _ in range(K):
                grad_Q = linear + H * (z - x) / eta
                v = lmo(ball, radius, grad_Q)
                top, below = grad_Q @ (z - v), (H * (z - v) ** 2).sum()
                size = min(eta * top / below, bound) if top > 0 and below > 0 else 0.0
                z = z + size * (v - z)
            x = z
        xs.append(x)
    return xs
