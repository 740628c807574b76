import numpy as np
import pytest

import adafw
from adafw import losses
from adafw.steps import CorrectiveStep, corrects_atoms, corrects_jointly, corrects_on


@pytest.mark.parametrize(
    "constraint",
    [adafw.L1Ball(1.0), adafw.L2Ball(1.0), adafw.LInfBall(1.0), adafw.Box(-1.0, 1.0),
     adafw.Simplex(1.0), adafw.UnitSimplex(1.0)],
)  # fmt: skip
def test_where_the_gradient_is_zero_nothing_is_done(constraint):
    f = adafw.LinearModel(np.eye(4), np.ones(4), losses.SquaredHinge())
    x = constraint.start((4,))
    counted = adafw.Counted(f)
    new, state = CorrectiveStep().update(counted, constraint, x, np.zeros(4), 0, {})
    assert new is x
    assert state == {}
    assert (counted.values, counted.gradients) == (0, 0)


def test_which_sets_are_known():
    atoms = [adafw.L1Ball(1.0), adafw.Simplex(1.0), adafw.UnitSimplex(1.0)]
    assert all(corrects_atoms(c) and corrects_on(c) for c in atoms)
    others = [adafw.L2Ball(1.0), adafw.LInfBall(1.0), adafw.Box(0.0, 1.0)]
    assert all(corrects_on(c) and not corrects_atoms(c) for c in others)
    bare = adafw.UserSet(lambda g: g, np.zeros(3))
    assert not corrects_on(bare)
    rows = np.repeat(np.arange(3)[:, None], 2, axis=1)
    for constraint, known in [
        *((c, True) for c in (adafw.L1Ball(1.0), *others, adafw.NuclearBall(1.0))),
        (adafw.GroupBall(1.0, rows), True), (adafw.GroupBall(1.0, rows.T), False),
        (adafw.GroupBall(1.0, [0, 1]), False), (adafw.Simplex(1.0), False), (bare, False),
    ]:  # fmt: skip
        assert corrects_jointly(constraint) == known
