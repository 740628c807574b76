"""AdaCSFW (CSFW if inner_steps = 0) as one writes it in NumPy: what the library is held against."""

import numpy as np
from scipy.special import expit


class PlainAdaCSFW:
    """Logistic loss over the l1 ball."""

    def __init__(self, A, y, radius, eta, inner_steps, batch, seed=0):
        m, n = A.shape
        self.A, self.y, self.radius, self.eta, self.K, self.batch = (
            A,
            y,
            radius,
            eta,
            inner_steps,
            batch,
        )
        self.rng, self.t = np.random.default_rng(seed), 0
        self.x, self.g, self.squares, self.alpha = (
            np.zeros(n),
            np.zeros(n),
            np.zeros(n),
            np.zeros(m),
        )

    def vertex(self, g):
        i = np.argmax(np.abs(g))
        v = np.zeros_like(g)
        v[i] = -self.radius * np.sign(g[i])
        return v

    def run(self, n):
        for _ in range(n):
            batch = np.unique(self.rng.integers(0, len(self.y), size=self.batch))
            rows, y = self.A[batch], self.y[batch]
            fresh = -y * expit(-y * (rows @ self.x)) / len(self.y)
            self.g = self.g + rows.T @ (fresh - self.alpha[batch])
            self.alpha[batch] = fresh
            self.step()
            self.t += 1
        return n

    def step(self):
        if self.K == 0:
            self.x = self.x + 2 / (self.t + 2) * (self.vertex(self.g) - self.x)
            return
        self.squares += self.g**2
        h, y = 1e-8 + np.sqrt(self.squares), self.x
        for _ in range(self.K):
            q = self.g + h * (y - self.x) / self.eta
            d = self.vertex(q) - y
            slope, curvature = -(q @ d), d @ (h * d)
            y = y + (min(self.eta * slope / curvature, 1.0) if slope > 0 else 0.0) * d
        self.x = y
