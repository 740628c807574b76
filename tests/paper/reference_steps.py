"""Sliding, boosted and active-set methods, written a second time from their papers.

Plain loops and lists, no line shared with src; linear models over the l1 ball and the simplex.
"""

import math

import numpy as np

from tests.paper.reference import losses


def vertex(kind, radius, g):
    v = np.zeros_like(g)
    if kind == "l1":
        i = int(np.argmax(np.abs(g)))
        v[i] = -radius * np.sign(g[i])
    elif kind == "simplex":
        v[int(np.argmin(g))] = radius
    elif kind == "linf":
        v = -radius * np.sign(g)
    elif kind == "l2":
        v = -radius * g / np.sqrt(g @ g)
    return v


def width(kind, radius, n):
    """The l2 diameter."""
    return {"l1": 2 * radius, "l2": 2 * radius, "linf": 2 * radius * math.sqrt(n),
            "simplex": math.sqrt(2) * radius}[kind]  # fmt: skip


def first(kind, radius, n):
    x = np.zeros(n)
    if kind == "simplex":
        x[0] = radius
    return x


def gradient_of(A, y, loss):
    slope = losses(loss)[1]

    def gradient(x, rows=slice(None)):
        return A[rows].T @ slope(A[rows] @ x, y[rows]) / len(y[rows])

    return gradient


def smoothness(A, loss):
    return {"squared": 2.0, "logistic": 0.25}[loss] * np.linalg.norm(A, 2) ** 2 / len(A)


def sliding(A, y, loss, kind, radius, *, method, T, seed=0, batch_size=None):
    """CGS and SCGS (Lan and Zhou 2016, algorithms 1 and 4), STORC (Hazan and Luo 2016)."""
    m, n = A.shape
    gradient, L, D = gradient_of(A, y, loss), smoothness(A, loss), width(kind, radius, n)
    rng = np.random.default_rng(seed)
    b = batch_size or max(1, m // 100)
    average = prox = first(kind, radius, n)  # their y_k and x_k
    out = [average]
    stage, k, length = 0, 0, 0
    for _ in range(T):
        if method == "STORC" and k == length:
            stage, k = stage + 1, 0
            length = math.ceil(2 ** (stage / 2 + 2))
            snapshot = prox = average
            full = gradient(snapshot)
        k += 1
        if method == "STORC":
            gamma, beta, eta = 2 / (k + 1), 3 * L / k, 2 * L * D**2 / (length * k)
        else:
            beta = 3 * L / (k + 1) if method == "CGS" else 4 * L / (k + 2)
            gamma, eta = 3 / (k + 2), L * D**2 / (k * (k + 1))
        z = (1 - gamma) * average + gamma * prox
        if method == "CGS":
            g = gradient(z)
        elif method == "SCGS":
            g = gradient(z, rng.integers(0, m, size=b))
        elif k == 1:
            g = full
        else:
            batch = rng.integers(0, m, size=b)
            g = gradient(z, batch) - gradient(snapshot, batch) + full
        u = prox
        while True:
            slope = beta * (u - prox) + g
            v = vertex(kind, radius, slope)
            if slope @ (u - v) <= eta:
                break
            u = u + min(1, slope @ (u - v) / (beta * (u - v) @ (u - v))) * (v - u)
        prox = u
        average = (1 - gamma) * average + gamma * prox
        out.append(average)
    return out


def boosted(A, y, loss, kind, radius, *, stream, size, T, K=None, delta=1e-3):
    """Combettes and Pokutta (2020), algorithm 2; `stream(x)` gives g_t, `size(g, d, t)` gamma_t."""
    x = first(kind, radius, A.shape[1])
    out = [x]
    for t in range(T):
        g = stream(x)
        d, weight, k = np.zeros_like(x), 0.0, 0
        while K is None or k < K:
            r = -g - d
            u, towards = vertex(kind, radius, -r) - x, True
            if d.any() and r @ (-d) / np.linalg.norm(d) > r @ u:
                u, towards = -d / np.linalg.norm(d), False
            share = r @ u / (u @ u)
            new = d + share * u
            before = -1 if not d.any() else -g @ d / np.linalg.norm(g) / np.linalg.norm(d)
            if -g @ new / np.linalg.norm(g) / np.linalg.norm(new) - before < delta:
                break
            weight = weight + share if towards else weight * (1 - share / np.linalg.norm(d))
            d, k = new, k + 1
        x = x + size(g, d / weight, t) * d / weight
        out.append(x)
    return out


def active(A, y, loss, kind, radius, *, method, T):
    """Away steps, pairwise steps (Lacoste-Julien and Jaggi 2015), BPCG (Tsuji et al. 2022).

    With short steps: a line search leaves <g, d> = 0, and then the two ends of a pairwise step are
    equally good and bad, so that rounding decides what comes next.
    """
    gradient, L = gradient_of(A, y, loss), smoothness(A, loss)
    x = first(kind, radius, A.shape[1])
    weights, out = {tuple(x): 1.0}, [x]
    for _ in range(T):
        x = sum(w * np.array(v) for v, w in weights.items())
        g = gradient(x)
        s = tuple(vertex(kind, radius, g))
        a = max(weights, key=lambda v: g @ np.array(v))
        local = min(weights, key=lambda v: g @ np.array(v))
        toward, away = g @ (x - np.array(s)), g @ (np.array(a) - x)
        move = {
            "AFW": "fw" if toward >= away else "away",
            "PFW": "pair",
            "BPCG": "local" if g @ (np.array(a) - np.array(local)) >= toward else "fw",
        }[method]
        if move == "fw":
            d, most = np.array(s) - x, 1.0
        elif move == "away":
            d, most = x - np.array(a), weights[a] / (1 - weights[a])
        else:
            d, most = np.array(s if move == "pair" else local) - np.array(a), weights[a]
        gamma = min(most, -g @ d / (L * d @ d))
        if move in ("fw", "away"):
            sign = 1 if move == "fw" else -1
            weights = {v: w * (1 - sign * gamma) for v, w in weights.items()}
            new = s if move == "fw" else a
            weights[new] = weights.get(new, 0.0) + sign * gamma
        else:
            new = s if move == "pair" else local
            weights[a] -= gamma
            weights[new] = weights.get(new, 0.0) + gamma
        weights = {v: w for v, w in weights.items() if w > 1e-15}
        out.append(sum(w * np.array(v) for v, w in weights.items()))
    return out
