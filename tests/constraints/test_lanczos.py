import numpy as np
import pytest

from adafw.constraints.lanczos import leading_triplet, spectral_norm_bound


def orthogonal(rng, m, k):
    return np.linalg.qr(rng.standard_normal((m, k)))[0]


def with_spectrum(rng, m, n, s):
    return (orthogonal(rng, m, len(s)) * s) @ orthogonal(rng, n, len(s)).T


def matrices():
    rng = np.random.default_rng(0)
    blocks = np.zeros((90, 80))
    blocks[:40, :40] = rng.standard_normal((40, 40))
    blocks[40:, 40:] = 1.1 * rng.standard_normal((50, 40))
    return {
        "gaussian": rng.standard_normal((120, 90)),
        "wide": rng.standard_normal((40, 300)),
        "low rank": rng.standard_normal((100, 3)) @ rng.standard_normal((3, 80)),
        "decaying": with_spectrum(rng, 100, 80, 0.7 ** np.arange(80)),
        "isometry": orthogonal(rng, 100, 60),
        "two blocks": blocks,
        "sparse": rng.standard_normal((200, 150)) * (rng.random((200, 150)) < 0.02),
        "equal at the top": with_spectrum(
            rng, 90, 80, np.r_[1, 1, 1 - 1e-7, np.linspace(0.9, 0, 77)]
        ),
        "tiny": 1e-300 * rng.standard_normal((60, 50)),
        "huge": 1e300 * rng.standard_normal((60, 50)),
        "one column": rng.standard_normal((30, 1)),
        "one entry": np.array([[-3.0]]),
    }


@pytest.mark.parametrize("name", matrices())
def test_triplet_and_bound_enclose_the_largest_singular_value(name):
    a = matrices()[name]
    largest = np.linalg.svd(a, compute_uv=False)[0]
    u, s, v = leading_triplet(a)
    digits = 1e-7 if name == "equal at the top" else 1e-10
    assert s == pytest.approx(largest, rel=digits)
    assert np.linalg.norm(u) == pytest.approx(1, rel=1e-14)
    assert np.linalg.norm(v) == pytest.approx(1, rel=1e-14)
    scale = np.abs(a).max()
    assert u @ (a / scale) @ v == pytest.approx(largest / scale, rel=digits)
    bound = spectral_norm_bound(a, s)
    assert largest <= bound <= largest * (1 + 10 * digits)


@pytest.mark.parametrize("name", matrices())
def test_float32_and_torch_have_the_digits_they_can(name):
    torch = pytest.importorskip("torch")
    a = matrices()[name]
    largest = np.linalg.svd(a, compute_uv=False)[0]
    assert leading_triplet(torch.from_numpy(a))[1] == pytest.approx(largest, rel=1e-7)
    if 1e-30 < largest < 1e30:
        u, s, v = leading_triplet(a.astype(np.float32))
        assert u.dtype == v.dtype == np.float32
        assert s == pytest.approx(largest, rel=1e-5)


def test_zero_has_no_direction():
    _, s, _ = leading_triplet(np.zeros((4, 3)))
    assert s == 0
    assert spectral_norm_bound(np.zeros((4, 3)), 0.0) == 0


@pytest.mark.parametrize("below", [0.0, 0.5, 0.99, 1 - 1e-9])
def test_the_bound_holds_whatever_it_is_told(below):
    rng = np.random.default_rng(1)
    for shape in ((50, 40), (40, 50), (7, 7)):
        a = rng.standard_normal(shape)
        largest = np.linalg.svd(a, compute_uv=False)[0]
        bound = spectral_norm_bound(a, below * largest)
        assert bound >= largest
        if below > 0.9:  # t grows tenfold beyond what it was told, so it is not far off
            assert bound <= largest * (1 + 10 * (1 - below) + 1e-10)


def test_more_steps_than_the_memory_allows():
    """A thousand singular values packed below the largest: restarts from the best so far."""
    a = np.diag(np.r_[1.0 + 1e-4, np.linspace(0, 1, 1199)])
    assert leading_triplet(a)[1] == pytest.approx(1.0 + 1e-4, rel=1e-7)
