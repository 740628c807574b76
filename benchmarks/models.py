"""Models of real size beside what people use: multinomial text, a path of radii, completion.

    ADAFW_DATA=... python benchmarks/models.py multinomial | path | completion | large [--out FILE]

multinomial: 16 000 x 60 000 generated text, 20 classes, l1 ball, to a certified relative gap of
1e-3, against scikit-learn's saga at the penalty whose solution has that radius, with the fewest
epochs (searched, not counted) that bring its objective within 1e-3 of what ours proves.
path: 50 radii x 5 folds on RCV1-v2 against LogisticRegressionCV(liblinear) at 50 values of C.
completion: 943 x 1682 ratings, MovieLens 100k where $ADAFW_DATA/ml-100k/u.data is, else generated
(low rank, offsets, noise, rounded to 1 .. 5): RMSE on a fifth held out, against alternating least
squares tuned on a validation part, every trial given the time of our fit, and Surprise's SVD.
large: 10^5 x 10^5 with 10^7 observations: memory and gap after the seconds given.
CPU seconds of one thread, whole calls.
"""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse  # noqa: E402
import json  # noqa: E402
import resource  # noqa: E402
import time  # noqa: E402
import warnings  # noqa: E402
from pathlib import Path  # noqa: E402

import numpy as np  # noqa: E402
from data import rcv1  # noqa: E402
from machine import describe  # noqa: E402
from scipy import sparse  # noqa: E402
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV  # noqa: E402

from adafw import losses  # noqa: E402
from adafw.objectives import MatrixModel  # noqa: E402
from adafw.sklearn import (  # noqa: E402
    FrankWolfeClassifier,
    FrankWolfeClassifierCV,
    MatrixCompletion,
)


def text(m=16_000, n=60_000, k=20, per_row=100, seed=0):
    """Documents of Zipf words, one in eight of a class's 400 own; tf-idf of unit length.

    A tenth of the labels is drawn anew.
    """
    rng = np.random.default_rng(seed)
    frequency = 1 / np.arange(3, n + 3) ** 1.05
    y, lengths = rng.integers(0, k, m), rng.geometric(1 / per_row, m) + 10
    own = np.array([rng.choice(n // 4, 400, replace=False) for _ in range(k)])
    rows, total = np.repeat(np.arange(m), lengths), lengths.sum()
    words = rng.choice(n, total, p=frequency / frequency.sum())
    swap = rng.random(total) < 0.12
    picked = own[y[rows], (rng.random(total) ** 2 * 400).astype(int)]
    words = np.where(swap, picked, words)
    A = sparse.csr_matrix((np.ones(total), (rows, words)), shape=(m, n))
    A.sum_duplicates()
    seen = np.maximum(np.bincount(A.indices, minlength=n), 1)
    A.data = (1 + np.log(A.data)) * np.log(m / seen)[A.indices]
    A = sparse.diags(1 / np.sqrt(np.asarray(A.multiply(A).sum(axis=1)).ravel())) @ A
    return sparse.csr_matrix(A), np.where(rng.random(m) < 0.1, rng.integers(0, k, m), y)


def clocked(work):
    """(what it returns, CPU seconds)."""
    began = time.process_time()
    found = work()
    return found, time.process_time() - began


def multinomial(radius=5000.0, tol=1e-3, most=320):
    A, y = text()
    few = np.concatenate([np.flatnonzero(y == c)[:10] for c in range(20)])
    FrankWolfeClassifier(radius=10.0).fit(A[few], y[few])  # compiles
    model, first = clocked(lambda: FrankWolfeClassifier(radius=radius, tol=tol).fit(A, y))
    f = MatrixModel(A, y, losses.Softmax(), intercept=True)
    x = np.ascontiguousarray(model.coef_.T)
    price = float(np.abs(f.gradient(x)).max())  # the multiplier: saga's penalty is 1 / (m price)

    def penalised(coef, b):
        return f.value_at(A @ coef.T + b) + price * np.abs(coef).sum()

    mine = penalised(model.coef_, model.intercept_)
    least = mine - model.gap_  # no coefficients have a lower sum, whatever their norm
    ours, found = [first], {}

    def enough(epochs):
        saga = LogisticRegression(l1_ratio=1, C=1 / (len(y) * price), solver="saga",
                                  max_iter=epochs, tol=1e-12)  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _, seconds = clocked(lambda: saga.fit(A, y))
        above = (penalised(saga.coef_, saga.intercept_) - least) / mine
        found[epochs] = {"epochs": epochs, "seconds": seconds, "above": above}
        print(found[epochs], flush=True)
        # Between its runs, so that both meet the same machine.
        ours.append(clocked(lambda: FrankWolfeClassifier(radius=radius, tol=tol).fit(A, y))[1])
        return above <= tol

    low, high = 0, 5
    while not enough(high) and high < most:
        low, high = high, 2 * high
    while high > 1.15 * low + 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return {
        "shape": A.shape, "radius": radius, "seconds": float(np.median(ours)),
        "iterations": model.n_iter_, "relative_gap": model.gap_ / model.value_,
        "nonzeros": int((model.coef_ != 0).sum()), "accuracy": model.score(A, y),
        "above": (mine - least) / mine, "saga": found[high],
        "ratio": found[high]["seconds"] / float(np.median(ours)),
    }  # fmt: skip


def path(radii=50, folds=5):
    name, A, y = rcv1()
    model = FrankWolfeClassifierCV(radii=radii, cv=folds)
    FrankWolfeClassifierCV(radii=3, cv=2).fit(A[:500], y[:500])  # compiles
    _, ours = clocked(lambda: model.fit(A, y))
    theirs = LogisticRegressionCV(Cs=radii, cv=folds, solver="liblinear", l1_ratios=(1,))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _, seconds = clocked(lambda: theirs.fit(A, y))
    _, again = clocked(lambda: model.fit(A, y))  # on either side, as the machine may change
    return {
        "data": name, "seconds": [ours, again], "liblinear_seconds": seconds,
        "ratio": 2 * seconds / (ours + again), "radius": model.radius_,
        "score": float(model.scores_.mean(axis=1).max()), "largest_gap": float(model.gaps_.max()),
        "liblinear_score": float(np.mean(next(iter(theirs.scores_.values())), axis=0).max()),
    }  # fmt: skip


def ratings(m=943, n=1682, count=100_000, rank=12, noise=0.8, seed=0):
    """(pairs, values): low rank with falling singular values, offsets, noise, rounded to 1 .. 5."""
    rng = np.random.default_rng(seed)
    users, items = rng.dirichlet(np.full(m, 0.8)), rng.dirichlet(np.full(n, 0.3))
    drawn = rng.choice(m, 3 * count, p=users) * n + rng.choice(n, 3 * count, p=items)
    place = rng.permutation(np.unique(drawn))[:count]
    r, c = np.divmod(place, n)
    left = rng.normal(size=(m, rank)) / np.sqrt(np.arange(1, rank + 1))
    right = rng.normal(size=(n, rank))
    z = 3.5 + 0.4 * rng.normal(size=m)[r] + 0.5 * rng.normal(size=n)[c]
    z = z + 0.35 * np.einsum("ij,ij->i", left[r], right[c]) + noise * rng.normal(size=len(r))
    return np.column_stack([r, c]), np.clip(np.round(z), 1, 5)


def als(pairs, residuals, shape, rank, penalty, seconds):
    """Factors by alternating ridge regressions, in the CPU seconds given."""
    began, rng = time.process_time(), np.random.default_rng(0)
    sides = [np.zeros((size, rank)) for size in shape]
    sides[1] = 0.1 * rng.normal(size=sides[1].shape)
    R = sparse.csr_array((residuals, pairs.T), shape=shape)
    views = (R, sparse.csr_array(R.T))
    while True:
        for k, view in enumerate(views):
            other = sides[1 - k]
            for i in range(view.shape[0]):
                part = slice(view.indptr[i], view.indptr[i + 1])
                F = other[view.indices[part]]
                H = F.T @ F + penalty * np.eye(rank)
                sides[k][i] = np.linalg.solve(H, F.T @ view.data[part])
        if time.process_time() - began >= seconds:
            return sides


def rmse(found, truth):
    return float(np.sqrt(np.mean((found - truth) ** 2)))


def movielens():
    """(name, pairs, values): MovieLens 100k where its file is, else generated in its shape."""
    file = Path(os.environ.get("ADAFW_DATA", ".")) / "ml-100k" / "u.data"
    if not file.exists():
        return "generated", *ratings()
    table = np.loadtxt(file, dtype=np.int64, encoding="utf-8-sig")
    return "MovieLens 100k", table[:, :2] - 1, table[:, 2].astype(float)


def surprise_svd(train, test):
    """RMSE and seconds of Surprise's SVD, tuned by its own search, or why there are none."""
    try:
        from pandas import DataFrame
        from surprise import SVD, Dataset, Reader
        from surprise.model_selection import GridSearchCV
    except ImportError as error:
        return str(error)
    frame = DataFrame(np.column_stack([*train[0].T, train[1]]), columns=["r", "c", "v"])
    data = Dataset.load_from_df(frame, Reader(rating_scale=(1, 5)))
    grid = {"n_factors": [20, 100], "n_epochs": [20, 40], "reg_all": [0.05, 0.1], "lr_all": [0.01]}
    search = GridSearchCV(SVD, grid, measures=["rmse"], cv=3)
    _, tuning = clocked(lambda: search.fit(data))
    model = SVD(**search.best_params["rmse"], random_state=0)
    _, seconds = clocked(lambda: model.fit(data.build_full_trainset()))
    found = [model.predict(float(r), float(c)).est for r, c in test[0]]
    how = {"search_seconds": tuning, "seconds": seconds, **search.best_params["rmse"]}
    return {"rmse": rmse(np.array(found), test[1]), **how}


def tuned_als(train, test, base, shape, seconds):
    """RMSE of alternating least squares on what the offsets leave; rank and penalty searched."""
    part = np.random.default_rng(2).random(len(train[1])) < 0.1
    rest = train[1] - base(train[0])

    def found(pairs, residuals, to, rank, penalty):
        L, R = als(pairs, residuals, shape, rank, penalty, seconds)
        return np.einsum("ij,ij->i", L[to[:, 0]], R[to[:, 1]])

    trials = {}
    for rank in (4, 8, 16):
        for penalty in (5.0, 8.0, 12.0, 18.0):
            z = found(train[0][~part], rest[~part], train[0][part], rank, penalty)
            trials[rank, penalty] = rmse(z, rest[part])
    rank, penalty = min(trials, key=trials.get)
    theirs = base(test[0]) + found(train[0], rest, test[0], rank, penalty)
    how = {"rank": rank, "penalty": penalty, "seconds": seconds, "trials": len(trials)}
    return {"rmse": rmse(theirs, test[1]), **how}


def completion():
    name, pairs, values = movielens()
    shape, held = (943, 1682), np.random.default_rng(1).random(len(values)) < 0.2
    train, test = (pairs[~held], values[~held]), (pairs[held], values[held])
    MatrixCompletion(20.0, norm="adaptive").fit(pairs[:1000], values[:1000])  # compiles
    found = {"data": name}
    for norm in ("adaptive", "nuclear"):
        chosen, search = clocked(lambda n=norm: MatrixCompletion(norm=n, shape=shape).fit(*train))
        again = MatrixCompletion(chosen.radius_, norm=norm, shape=shape)
        model, seconds = clocked(lambda a=again: a.fit(*train))
        found[norm] = {
            "rmse": rmse(model.predict(test[0]), test[1]), "search_seconds": search - seconds,
            "seconds": seconds, "radius": model.radius_, "rank": model.rank_,
            "relative_gap": model.gap_ / model.value_,
        }  # fmt: skip
        print(norm, found[norm], flush=True)

    def base(places):
        r, c = places.T
        return model.mean_ + model.row_offsets_[r] + model.col_offsets_[c]

    found["als"] = tuned_als(train, test, base, shape, found["adaptive"]["seconds"])
    found["surprise"] = surprise_svd(train, test)
    return {**found, "offsets_rmse": rmse(base(test[0]), test[1])}


def large(size=100_000, count=10_000_000, radius=2e5, seconds=600.0):
    rng = np.random.default_rng(0)
    left, right = rng.normal(size=(2, size, 5))
    pairs = rng.integers(0, size, (count, 2), dtype=np.int32)
    values = np.einsum("ij,ij->i", left[pairs[:, 0]], right[pairs[:, 1]]) + rng.normal(size=count)
    del left, right
    model = MatrixCompletion(radius, shape=(size, size), tol=1e-2, max_seconds=seconds)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _, used = clocked(lambda: model.fit(pairs, values))
    return {
        "seconds": used, "relative_gap": model.gap_ / model.value_, "value": model.value_,
        "variance": float(values.var()), "rank": model.rank_, "status": model.status_,
        "peak_gigabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    works = {w.__name__: w for w in (multinomial, path, completion, large)}
    parser.add_argument("what", choices=works)
    parser.add_argument("--out", help="JSON file of the numbers")
    parser.add_argument("--radius", type=float, help="another radius, of multinomial and large")
    given = parser.parse_args()
    how = {} if given.radius is None else {"radius": given.radius}
    found = {given.what: works[given.what](**how), "machine": describe()}
    print(json.dumps(found, indent=1, default=str))
    if given.out:
        Path(given.out).write_text(json.dumps(found, indent=1, default=str))


if __name__ == "__main__":
    main()
