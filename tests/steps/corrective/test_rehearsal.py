"""Nothing is compiled while the clock runs."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import adafw
from adafw import losses
from adafw.constraints.counted import CountedSet
from adafw.objectives import MatrixModel, WithIntercept
from adafw.rows import as_rows
from adafw.rows.csr import CSRRows
from adafw.steps.corrective import rehearsal
from adafw.steps.corrective.box import BoxCorrector
from adafw.steps.corrective.l2_ball import L2Corrector

_SCRIPT = """
import sys
import numpy as np
from numba.core.event import install_recorder
from scipy import sparse
import adafw

rng = np.random.default_rng(0)
A = sparse.random(300, 250, 0.1, format="csr", random_state=rng)
y = np.where(rng.random(300) < 0.5, 1.0, -1.0)
y[:20] = 1.0  # the first rows are of one kind
f = adafw.LinearModel(A, y, adafw.losses.Logistic())
if sys.argv[1] == "l1":  # the first rows have none of the first columns
    A[:20, :20] = 0.0
    A.eliminate_zeros()
    f = adafw.LinearModel(A, y, adafw.losses.Logistic())
sets = {
    "l1": adafw.L1Ball(8.0),
    "box": adafw.LInfBall(0.5),
    "groups": adafw.GroupBall(1.0, np.arange(250) // 5),
    "l2": adafw.L2Ball(1.0),
}
constraint, step, x = sets[sys.argv[1]], adafw.steps.CorrectiveStep(), np.zeros(250)
f.value_and_gradient(x)
f.rows.dot(x)
if sys.argv[2] == "prepared":
    step.prepare(f, constraint, x, {})
with install_recorder("numba:compile") as compiled:
    state = {}
    for t in range(1, 4):
        x, state = step.update(f, constraint, x, f.gradient(x), t, state)
print(len(compiled.buffer))
"""


def compiled(name: str, how: str, cache: Path) -> int:
    """How many kernels were compiled in the first steps."""
    there = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    command = [sys.executable, "-c", _SCRIPT, name, how]
    return int(subprocess.run(command, env=there, capture_output=True, check=True).stdout)


@pytest.mark.parametrize(
    "name",
    [
        "box",
        "l1",
        pytest.param("groups", marks=pytest.mark.slow),
        pytest.param("l2", marks=pytest.mark.slow),
    ],
)
def test_kernels_are_compiled_before_the_first_step(name, tmp_path):
    assert compiled(name, "prepared", tmp_path) == 0


@pytest.mark.slow
def test_without_a_rehearsal_they_are_not(tmp_path):
    assert compiled("box", "unprepared", tmp_path) > 0


def linear(m=30, weighted=False, intercept=False, stored=sparse.csr_array):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((m, 5)) * (rng.random((m, 5)) < 0.7)
    y = np.where(np.isin(np.arange(m), [17, 23]), -1.0, 1.0)  # not among the first rows
    w = rng.uniform(1.0, 2.0, m) if weighted else None
    f = adafw.LinearModel(stored(A), y, losses.Logistic(), w)
    return (WithIntercept(f) if intercept else f), A


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
def test_a_few_rows_have_both_ends_of_the_targets(weighted, intercept):
    f, A = linear(weighted=weighted, intercept=intercept)
    few = rehearsal._few(f)
    model = few.model if intercept else few
    assert isinstance(few, WithIntercept) is intercept
    assert model.n_terms == 9  # the first eight, and one of the other kind
    z = A @ np.arange(5.0)
    np.testing.assert_allclose(model.rows.dot(np.arange(5.0)), z[[*range(8), 17]])
    assert set(model.y.tolist()) == {1.0, -1.0}
    assert (model.sample_weight is None) is not weighted
    small, _ = linear(3)
    assert rehearsal._few(small).n_terms == 3


def test_a_few_rows_of_several_outputs():
    rng = np.random.default_rng(0)
    y = np.r_[np.zeros(20, int), np.arange(4)]
    f = MatrixModel(rng.standard_normal((24, 3)), y, losses.Softmax(), n_outputs=5)
    few = rehearsal._few(f)
    assert few.shape == (3, 5)
    assert few.n_terms == 11  # the first eight, and one of each class after them
    assert not few.has_intercept
    assert few.sample_weight is None
    both = MatrixModel(rng.standard_normal((24, 3)), rng.standard_normal((24, 2)),
                       losses.Outputs(losses.Squared()), np.ones(24), intercept=True)  # fmt: skip
    few = rehearsal._few(both)
    assert few.has_intercept
    assert few.sample_weight is not None


def test_kinds_of_data_are_rehearsed_once_each(monkeypatch):
    monkeypatch.setattr(rehearsal, "_DONE", set())
    calls = []

    class Watched(BoxCorrector):
        def improve(self, f, constraint, x, g, t, state):
            calls.append((f.n_terms, constraint, state))
            return super().improve(f, constraint, x, g, t, state)

    ball, x = adafw.LInfBall(1.0), np.zeros(5)
    corrector = Watched()
    for intercept in (False, True):
        for weighted in (False, True):
            for stored in (sparse.csr_array, np.asarray):
                f, _ = linear(weighted=weighted, intercept=intercept, stored=stored)
                calls.clear()
                rehearsal.rehearse(corrector, f, CountedSet(ball), x)
                assert [n for n, _, _ in calls] == [9, 9]  # two iterations on a few rows
                assert all(constraint is ball for _, constraint, _ in calls)  # not counted
                rehearsal.rehearse(corrector, f, ball, x)
                assert len(calls) == 2
    assert not x.any()
    calls.clear()
    single = adafw.LinearModel(f.rows.array.astype(np.float32), f.model.y, losses.Logistic())
    rehearsal.rehearse(corrector, single, ball, x.astype(np.float32))
    hinge = adafw.LinearModel(f.rows.array, f.model.y, losses.SquaredHinge())
    rehearsal.rehearse(corrector, hinge, ball, x)
    assert len(calls) == 4
    other = adafw.UserSum(1, lambda x: 0.0, lambda x, batch=None: x)
    rehearsal.rehearse(corrector, other, ball, x)
    assert len(calls) == 4


def test_rows_far_away_are_not_rehearsed(monkeypatch):
    monkeypatch.setattr(rehearsal, "_DONE", set())

    class Far(CSRRows):
        remote = True

    _, A = linear()
    f = adafw.LinearModel(Far(sparse.csr_array(A)), np.ones(30), losses.Logistic())
    rehearsal.rehearse(BoxCorrector(), f, adafw.LInfBall(1.0), np.zeros(5))
    assert not rehearsal._DONE


def test_labels_of_one_kind_are_no_rehearsal():
    A = np.random.default_rng(0).standard_normal((30, 5))
    weights = np.ones(30)
    weights[:20] = 0.0
    y = np.where(np.arange(30) < 25, 1.0, -1.0)
    f = WithIntercept(adafw.LinearModel(A, y, losses.Logistic(), weights))
    f.model.y = np.ones(30)  # as if no row of the other kind were found
    assert rehearsal._few(f) is None


def test_a_class_that_comes_late_is_among_the_few(monkeypatch):
    """The first run of a process was refused where the first rows had not every class."""
    monkeypatch.setattr(rehearsal, "_DONE", set())
    rng = np.random.default_rng(0)
    y = np.r_[np.zeros(20, int), np.full(20, 3), np.ones(20, int), np.full(20, 2)]
    A = rng.normal(size=(80, 4)) + np.eye(4)[y]
    f = adafw.MatrixModel(A, y, adafw.losses.Softmax(), n_outputs=4, intercept=True)
    assert set(rehearsal._few(f).y) == {0, 1, 2, 3}
    r = adafw.minimize(f, adafw.L2Ball(2.0), adafw.Corrective(), gap_tolerance=1e-8)
    assert r.status == "converged"
    assert rehearsal._DONE


@pytest.mark.parametrize("error", [ArithmeticError, FloatingPointError, ValueError])
def test_what_goes_wrong_with_a_few_rows_is_left_to_the_run(error, monkeypatch):
    monkeypatch.setattr(rehearsal, "_DONE", set())
    told = []

    class Wrong(BoxCorrector):
        def improve(self, f, constraint, x, g, t, state):
            told.append(np.geterr())
            raise error("of these rows")

    f, _ = linear()
    rehearsal.rehearse(Wrong(), f, adafw.LInfBall(1.0), np.zeros(5))
    assert [set(how.values()) for how in told] == [{"ignore"}]


def test_both_ends_of_numbers_are_among_the_few():
    rng = np.random.default_rng(0)
    y = rng.random(30)
    y[[19, 25]] = 2.0, -1.0
    few = rehearsal._few(adafw.LinearModel(rng.standard_normal((30, 3)), y, losses.Squared()))
    np.testing.assert_array_equal(few.y, y[[*range(8), 19, 25]])


def test_kinds_are_told_apart_by_all_that_kernels_depend_on():
    """A corrector each, rows as they are stored, whether a matrix is formed, types, weights."""
    rng = np.random.default_rng(0)
    A, y = rng.standard_normal((30, 5)), np.where(np.arange(30) % 3, 1.0, -1.0)
    wide = np.tile(A, 60)  # too many columns for a matrix
    stored = as_rows(sparse.csr_array(A))

    def model(rows, loss=losses.Logistic(), weight=None):
        return adafw.LinearModel(rows, y, loss, weight)

    kinds = [
        rehearsal._kind(corrector, f)
        for corrector, f in [
            (BoxCorrector(), model(A)), (L2Corrector(), model(A)), (BoxCorrector(), model(wide)),
            (BoxCorrector(), model(stored)), (BoxCorrector(), model(stored.centred()[0])),
            (BoxCorrector(), model(A.astype(np.float32))),
            (BoxCorrector(), model(A, losses.SquaredHinge())),
            (BoxCorrector(), model(A, weight=np.ones(30) + (y > 0))),
            (BoxCorrector(), WithIntercept(model(A))),
            (BoxCorrector(), MatrixModel(A, (y > 0).astype(int), losses.Softmax())),
        ]
    ]  # fmt: skip
    assert len(set(kinds)) == len(kinds)
    other = adafw.LinearModel(A[:20] + 1, y[:20], losses.Logistic())
    assert rehearsal._kind(BoxCorrector(), other) == kinds[0]
