"""Parameters moved into a set that knows no projection: along the line to its start point."""

import pytest

torch = pytest.importorskip("torch")

import adafw  # noqa: E402
from adafw.torch import SFW, make_feasible  # noqa: E402
from adafw.torch.feasible import contains  # noqa: E402


def disc(centre):
    """The disc of radius 1 around a point other than 0, as a user would write it."""

    def inside(x, tol=1e-9):
        return bool((x - centre).norm() <= 1 + (tol or 0.0))

    return adafw.UserSet(
        lmo=lambda g: centre - g / g.norm(), start=lambda shape, dtype: centre.clone(),
        contains=inside,
    )  # fmt: skip


def test_the_last_point_of_the_set_on_the_way_from_its_start():
    centre = torch.tensor([3.0, -1.0], dtype=torch.float64)
    p = torch.nn.Parameter(centre + torch.tensor([3.0, 4.0], dtype=torch.float64))
    assert make_feasible([{"params": [p], "constraint": disc(centre)}])
    expected = centre + torch.tensor([0.6, 0.8], dtype=torch.float64)
    torch.testing.assert_close(p.detach(), expected, rtol=0, atol=2e-9)
    assert make_feasible([{"params": [p], "constraint": disc(centre)}]) == []


def test_it_is_a_point_of_the_set_itself_whatever_that_tolerates():
    class Plain(adafw.L2Ball):
        projection = None

    for dtype in (torch.float64, torch.float32):
        p = torch.nn.Parameter(torch.tensor([3.0, 4.0, 0.5], dtype=dtype))
        assert make_feasible([{"params": [p], "constraint": Plain(2.0)}])
        exact = 2 * torch.tensor([3.0, 4.0, 0.5], dtype=torch.float64) / 25.25**0.5
        torch.testing.assert_close(p.detach(), exact.to(dtype), rtol=0, atol=2e-16)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_the_point_is_found_in_double_precision_and_rounded_once(dtype):
    asked = []

    class Plain(adafw.L2Ball):
        projection = None

    def shrink(x, h):
        asked.append(x.dtype)
        return 2 * x / x.norm()

    ball = adafw.L2Ball(2.0)
    own = adafw.UserSet(
        ball.lmo, lambda shape, dtype: ball.start(shape, dtype),
        contains=lambda x: bool(x.norm() <= 2 + 1e-6), project=shrink,
    )  # fmt: skip
    for seed in range(5):
        x = 3 + torch.randn(7, generator=torch.Generator().manual_seed(seed))
        x = x.to(dtype)
        exact = (2 * x.double() / x.double().norm()).to(dtype)
        for held in (Plain(2.0), own):
            p = torch.nn.Parameter(x.clone())
            assert make_feasible([{"params": [p], "constraint": held}])
            assert torch.equal(p.detach(), exact)
    assert set(asked) == {torch.float64}


@pytest.mark.parametrize(
    ("held", "told"),
    [
        (adafw.L2Ball(2.0), "its norm is 5"),
        (adafw.Box(-1.0, 2.0), "it is 2 away from it, with an l2 norm of 5"),
        (adafw.Simplex(2.0), "it is 5 away from it, with an l2 norm of 5"),
        (adafw.UnitSimplex(2.0), "it is 5 away from it, with an l2 norm of 5"),
    ],
    ids=repr,
)
def test_how_far_outside_a_start_is(held, told):
    p = torch.nn.Parameter(torch.tensor([4.0, 3.0]))
    with pytest.raises(ValueError, match=f": {told}; call"):
        SFW([{"params": [p], "constraint": held}], lr=0.1)


def test_parameters_in_a_tuple_and_empty_ones_are_taken():
    ball = adafw.L2Ball(2.0)
    empty, p = torch.nn.Parameter(torch.zeros(0, 2)), torch.nn.Parameter(torch.tensor([3.0, 4.0]))
    assert make_feasible([{"params": (empty, p), "constraint": ball}]) == [
        "parameter 1 of shape (2,)"
    ]
    torch.testing.assert_close(p.detach(), torch.tensor([1.2, 1.6]))


@pytest.mark.parametrize(
    ("dtype", "inside", "outside"),
    [(torch.float64, 1e-10, 1e-8), (torch.float32, 2e-6, 1e-5), (torch.bfloat16, 2**-7, 2**-6),
     (torch.float16, 2**-10, 2**-9)],
)  # fmt: skip
def test_a_set_is_held_to_up_to_the_rounding_of_the_dtype(dtype, inside, outside):
    ball = adafw.LInfBall(1.0)
    for excess, held in ((inside, True), (outside, False)):
        p = torch.nn.Parameter(torch.tensor([0.5, 1 + excess], dtype=torch.float64).to(dtype))
        assert contains(ball, p.detach()) is held
        assert make_feasible([{"params": [p], "constraint": ball}]) == (
            [] if held else ["parameter 0 of shape (2,)"]
        )
