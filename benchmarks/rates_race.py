"""A race of learning rates at the start, beside learning_rate="auto" and the best half decade.

    ADAFW_DATA=... python benchmarks/rates_race.py [name ...] [--sets large sparse small]
                                                   [--designs name ...] [--seeds 1]

Copies of a run go on side by side, each with a half decade of its own and the same index stream;
after a part of an epoch the half of the field with the smaller f stays, and has as much again as it
has had; the last one goes on, at its rate or by the rule of "auto". All that the field has
evaluated is counted, and what it is judged by, too; nothing is believed to have arrived before the
race is over. The field is around the median of the best half decades on all these data, a tenth of
the set's width with Frank-Wolfe steps and a hundredth with projected ones, which no real race would
know. Geometric means over the best half decade, none counted as more than 6, and how many miss 2.
Some 15 minutes. docs/learning_rate.md quotes the summary.
"""

import argparse
import math
from dataclasses import dataclass
from functools import partial

import numpy as np
import rates_small_data
import rates_sparse_data
from learning_rates import KINDS, LEVELS, epochs, follow, medians, minimum, path_of
from learning_rates import problems as large_problems

import adafw
from adafw import fresh_start, gradients
from adafw.kept_sample import KeptSample
from adafw.solver import State

CENTRES = {"Template 3": 0.1, "projected": 0.01}
LARGE = (
    "support vectors, linf 1", "RCV1, l1 100", "RCV1, l1 1000", "one-hot, l1 30",
    "badly scaled, l1 20", "least squares, l1 10", "mixture, simplex 1", "generated text, l1 300",
    "correlated squares, l1 5", "logistic, groups 6", "song years, l1 100",
)  # fmt: skip
MOST = 60.0


@dataclass(frozen=True)
class Race:
    """`field` half decades, each for so much of an `epoch`, judged on a `share` of the terms.

    Then the winner goes on at its rate, or with the rule. If `doubtful`, it is run only where the
    first window of the rule says little: a half of its sample has nothing to do with the way, or
    the halves differ in sign or by ten times in bend.
    """

    field: int
    epoch: float
    share: float = 0.1
    rule: bool = False
    doubtful: bool = False

    def __str__(self) -> str:
        parts = [f"{self.field} of {self.epoch:g}", "exactly" if self.share == 1 else "by a sample"]
        return ", ".join(parts + ["then the rule"] * self.rule + ["in doubt"] * self.doubtful)


DESIGNS = (
    *(Race(field, epoch) for field in (5, 7, 9) for epoch in (0.1, 0.3)),
    Race(5, 1.0),
    Race(7, 0.1, share=1.0),
    Race(5, 0.1, rule=True),
    Race(7, 0.1, rule=True),
    Race(5, 0.3, rule=True),
    Race(7, 0.1, doubtful=True),
    Race(5, 0.1, rule=True, doubtful=True),
    Race(7, 0.1, rule=True, doubtful=True),
)


class Problem:
    """A problem, with one kind of step on the gradients of an estimator."""

    def __init__(self, data, loss, ball, kind, estimator):
        self.data, self.loss, self.ball = data, loss, ball
        self.kind, self.estimator = kind, estimator
        self.f = f = adafw.LinearModel(*data, loss)
        self.x0 = ball.start(f.shape)
        self.width = ball.diameter(f.shape, math.inf)

    def part(self, size):
        """The mean over some of the terms, the same for all who are judged by it."""
        rows = np.random.default_rng(9_001).choice(self.f.n_terms, size, replace=False)
        A, y = self.data
        return adafw.LinearModel(A[np.sort(rows)], y[np.sort(rows)], self.loss)

    def algorithm(self, rate):
        return adafw.Algorithm(self.estimator(), KINDS[self.kind](rate))

    def go_on(self, rate, limit, state=None, seed=None):
        """The state after so many epochs of its own; None if the rate diverges."""
        begun = {"state": state} if state else {"seed": seed}
        r = adafw.minimize(self.f, self.ball, self.algorithm(rate), max_epochs=limit,
                           record_every=10**9, progress=False, **begun)  # fmt: skip
        return None if r.status == "diverged" else r.state


def run(problem, design, best, seed):
    """Epochs to each of the levels, with all that the race has cost; and the error at the end."""
    f, spent = problem.f, 0
    if design.doubtful:
        doubtful, spent = in_doubt(problem, seed)
        if not doubtful:
            return epochs(f, problem.ball, problem.algorithm("auto"), best, 2 * MOST, seed)
    centre = CENTRES[problem.kind] * problem.width
    ends = range(-(design.field // 2), design.field - design.field // 2)
    alive = {10 ** (i / 2) * centre: None for i in ends}
    size = max(30, round(design.share * f.n_terms))
    judge, size = (f, f.n_terms) if size >= f.n_terms else (problem.part(size), size)
    limit = design.epoch
    while len(alive) > 1:
        values = {}
        for rate in list(alive):
            before = alive[rate]
            after = problem.go_on(rate, limit, before, seed)
            # One that diverges has cost what it was given.
            spent += round(limit * f.n_terms) if after is None else after.gradient_evaluations
            spent -= before.gradient_evaluations if before else 0
            alive[rate] = after
            values[rate] = math.inf if after is None else float(judge.value(after.x))
            spent += size
        order = sorted(alive, key=lambda rate: values[rate] if values[rate] >= 0 else math.inf)
        alive = {rate: alive[rate] for rate in order[: len(order) // 2]}
        limit *= 2
    ((rate, s),) = alive.items()
    if s is None:
        return (math.inf,) * (len(LEVELS) + 1)
    own = s.gradient_evaluations
    s.gradient_evaluations = spent
    if not design.rule:
        return follow(f, problem.ball, problem.algorithm(rate), s, best, 2 * MOST)
    fresh_start.begin(s, rate)
    s.search |= {"start.x": problem.x0, "start.work": spent - own}
    return follow(f, problem.ball, problem.algorithm("auto"), s, best, 2 * MOST)


def in_doubt(problem, seed):
    """Whether the first window of the rule says little; and what it has cost."""
    f, auto = problem.f, problem.algorithm("auto")
    path = path_of(f, problem.ball, auto, MOST)
    fresh = State(x=problem.x0)
    fresh_start.begin(fresh, path.first)
    window, few = path._window(fresh, f.n_terms), min(f.n_terms, path.control.few)
    r = adafw.minimize(f, problem.ball, problem.algorithm(path.first), max_iterations=window,
                       seed=seed, progress=False)  # fmt: skip
    cost = r.state.gradient_evaluations + 2 * few
    begin, end = KeptSample.at(f, problem.x0, few), KeptSample.at(f, r.x, few)
    d = (r.x - problem.x0).astype(np.float64)
    seen = [begin.slopes(d), end.slopes(d), end.less(begin).slopes(d)]
    unseen = not all(map(any, zip(*seen[:2], strict=True)))
    signs = len({slope > 0 for slope in seen[0]}) > 1
    return unseen or signs or max(seen[2]) > 10 * min(seen[2]), cost


def tables(chosen):
    known = {
        "large": lambda: {name: large_problems()[name] for name in LARGE},
        "sparse": rates_sparse_data.problems,
        "small": lambda: rates_small_data.problems()["as it comes"],
    }
    return {name: known[name]() for name in chosen}


def times_the_best(problem, designs, best, seeds):
    """Who -> [epochs over those of the best half decade, to each level]; "auto" among them."""
    f, ball = problem.f, problem.ball
    rates = [10.0 ** (i / 2) for i in range(-8, 7)]
    fixed = [
        medians([epochs(f, ball, problem.algorithm(rate), best, MOST, seed) for seed in seeds])
        for rate in rates
    ]  # fmt: skip
    auto = problem.algorithm("auto")
    found = {"auto": [epochs(f, ball, auto, best, 2 * MOST, seed) for seed in seeds]}
    found |= {str(design): [run(problem, design, best, seed) for seed in seeds]
              for design in designs}  # fmt: skip
    least = [min(each[k] for each in fixed) for k in range(len(LEVELS))]
    return {
        who: [many[k] / least[k] if least[k] < math.inf else math.nan for k in range(len(LEVELS))]
        for who, many in ((who, medians(each)) for who, each in found.items())
    }


def summary(rows):
    """A line a design: of every step and level the geometric mean, and how many miss 2."""
    for who in rows[0][1]:
        cells = []
        for kind in KINDS:
            for k in range(len(LEVELS)):
                times = np.array([found[who][k] for step, found in rows if step == kind])
                times = times[~np.isnan(times)]
                if times.size:
                    mean = np.exp(np.log(np.minimum(times, 6.0)).mean())
                    cells.append(f"{mean:.2f}, {(times > 2).sum()} of {times.size}")
        print(f"| {who} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--sets", nargs="*", default=["large", "sparse", "small"])
    parser.add_argument("--designs", nargs="*", default=[str(design) for design in DESIGNS])
    parser.add_argument("--gradient", default="CSFW", type=partial(getattr, gradients))
    given = parser.parse_args()
    designs = [design for design in DESIGNS if str(design) in given.designs]
    for part, known in tables(given.sets).items():
        rows = []
        for name, (make, loss, ball) in known.items():
            if given.names and name not in given.names:
                continue
            data = make()
            best = minimum(adafw.LinearModel(*data, loss), ball)
            for kind in KINDS:
                problem = Problem(data, loss, ball, kind, given.gradient)
                found = times_the_best(problem, designs, best, range(given.seeds))
                rows.append((kind, found))
                for who, times in found.items():
                    print(f"{part}, {name}, {kind}, {who}:", *(f"{t:.2f}" for t in times),
                          flush=True)  # fmt: skip
        print(f"\n{part}")
        summary(rows)
