"""Settings and data shared by all tests."""

import faulthandler
import importlib
import inspect
import os
import pkgutil
import signal
import sys
import time

import numpy as np
import pytest
from hypothesis import settings
from scipy import sparse

import adafw

# The same examples on every run; machines under load are no failure.
settings.register_profile("adafw", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("adafw")

#: Seconds after which a test counts as one that never ends: the slowest take twenty, kernels that
#: are not compiled a hundred times as long.
_ENDLESS = 3600 if os.environ.get("NUMBA_DISABLE_JIT") == "1" else 300


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol():
    """Ends the process, with the stacks of its threads, where a test does not end by itself."""
    faulthandler.dump_traceback_later(_ENDLESS, exit=True, file=sys.__stderr__)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


@pytest.fixture
def clock(monkeypatch):
    """Time that passes only by `clock.sleep(seconds)`, exactly so much; for real, none does."""

    class Clock:
        now = 1024.0

        def sleep(self, seconds):
            self.now += seconds

    found = Clock()
    for name in ("monotonic", "perf_counter", "process_time"):
        monkeypatch.setattr(time, name, lambda: found.now)
    return found


@pytest.fixture
def regression():
    """Continuous data, on which no coordinate of a gradient is exactly 0 by accident."""
    rng = np.random.default_rng(5)
    A = rng.normal(size=(60, 12))
    y = A @ rng.normal(size=12) + 0.1 * rng.normal(size=60)
    return A, y


@pytest.fixture
def logistic(regression):
    A, y = regression
    return adafw.LinearModel(A, np.where(y >= 0, 1.0, -1.0), adafw.losses.Logistic())


@pytest.fixture
def sparse_logistic():
    """A sparse problem with an empty row and an all-zero column."""
    rng = np.random.default_rng(3)
    A = sparse.random_array((80, 30), density=0.2, rng=rng, format="csr")
    A = A.toarray()
    A[7], A[:, 4] = 0, 0
    y = np.where(rng.random(80) < 0.5, -1.0, 1.0)
    return adafw.LinearModel(sparse.csr_array(A), y, adafw.losses.Logistic())


def concrete(kind, package):
    """All concrete classes of a kind that the modules of a package define, exported or not."""
    module = importlib.import_module(f"adafw.{package}")
    names = [module.__name__]
    if hasattr(module, "__path__"):
        names += [found.name for found in pkgutil.iter_modules(module.__path__, f"{names[0]}.")]
    return {
        thing
        for name in names
        for thing in vars(importlib.import_module(name)).values()
        if inspect.isclass(thing) and issubclass(thing, kind) and thing.__module__ == name
        if not inspect.isabstract(thing) and not thing.__name__.startswith("_")
    }


@pytest.fixture
def nothing_left_out():
    """A check that a list of contract tests names every class of a kind, wrappers aside."""

    def check(kind, package, tried, where, wrappers=()):
        found = concrete(kind, package) - set(wrappers)
        assert found, f"no class found in adafw.{package}"
        left_out = {one.__name__ for one in found} - {type(one).__name__ for one in tried}
        assert not left_out, f"add a line for {', '.join(sorted(left_out))} to {where}"

    return check


@pytest.fixture(scope="session")
def l1_logistic():
    """scikit-learn's l1-penalised logistic regression, as its version wants to be asked for it."""
    from sklearn.linear_model import LogisticRegression

    # Up to 1.7 an l1_ratio without a penalty is a squared norm; from 1.8 on `penalty` warns.
    new = LogisticRegression().get_params()["penalty"] != "l2"
    asked = {"l1_ratio": 1} if new else {"penalty": "l1"}
    return lambda **given: LogisticRegression(**asked, **given)


def pytest_sessionstart(session):
    """A shell starts what runs in the background deaf to Ctrl-C; tests of it need to hear."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
