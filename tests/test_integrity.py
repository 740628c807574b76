"""States that no run leaves are refused, in one sentence, before any kernel sees them."""

import re

import numpy as np
import pytest
from scipy import sparse

import adafw
from adafw.integrity import Damaged, expect, expect_indices, expect_number
from adafw.io.arrays import read_npz, write_npz
from adafw.solver import State

PATHS = {
    "generic": lambda: adafw.AdaSVRF(learning_rate=1.0),
    "fused": lambda: adafw.AdaSVRF(learning_rate=1.0),
    "projected": lambda: adafw.AdaGrad(learning_rate=0.1, gradient=adafw.gradients.CSFW()),
    "lazy": lambda: adafw.AdaCSFW(learning_rate=1.0),
    "SPIDER": adafw.SPIDERFW,
    "ORGFW": adafw.ORGFW,
}


def problem():
    rng = np.random.default_rng(0)
    A = sparse.random_array((50, 12), density=0.3, rng=rng, format="csr")
    f = adafw.LinearModel(A, rng.choice([-1.0, 1.0], 50), adafw.losses.Logistic())
    return f, adafw.L1Ball(3.0)


def path_of(name):
    return {"projected": "fused", "SPIDER": "generic", "ORGFW": "generic"}.get(name, name)


def run(name, state=None, n=20):
    f, ball = problem()
    return adafw.minimize(f, ball, PATHS[name](), state=state, max_iterations=n, path=path_of(name))


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Arrays of a saved state of every path."""
    folder = tmp_path_factory.mktemp("states")
    found = {}
    for name in PATHS:
        run(name).state.save(folder / f"{name}.npz")
        found[name] = read_npz(folder / f"{name}.npz", lambda _: True, packed=False)
    return found


@pytest.mark.parametrize("name", PATHS)
def test_what_was_saved_goes_on_bit_for_bit(saved, name, tmp_path):
    write_npz(tmp_path / "s.npz", saved[name])
    again = run(name, State.load(tmp_path / "s.npz"), 40)
    np.testing.assert_array_equal(again.x, run(name, n=40).x)


@pytest.mark.parametrize("seed", range(8))
def test_a_float32_state_of_the_lazy_path_goes_on(tmp_path, seed):
    """Its table is in float64, and x is what float32 holds of it."""
    rng = np.random.default_rng(seed)
    A = sparse.random_array((40, 15), density=0.4, rng=rng, format="csr", dtype=np.float32)
    f = adafw.LinearModel(A, rng.choice([-1.0, 1.0], 40), adafw.losses.SquaredHinge())

    def run(n, **start):
        algorithm = adafw.AdaCSFW(learning_rate=0.3, batch_size=3)
        return adafw.minimize(
            f, adafw.L1Ball(100.0), algorithm, max_iterations=n, path="lazy", **start
        )

    run(17).state.save(tmp_path / "s.npz")
    again = run(60, state=State.load(tmp_path / "s.npz"))
    assert again.x.dtype == np.float32
    assert again.x.tobytes() == run(60).x.tobytes()


def changes(arrays):
    """(key, array that no run leaves): too long, too short, of another type, not finite ..."""
    for key, array in arrays.items():
        if array.ndim == 0 or key in ("records", "problem") or array.dtype.kind == "U":
            continue
        longer = np.concatenate(
            [array, array[-1:] if array.size else np.zeros_like(array, shape=1)]
        )
        yield key, longer
        if array.size:
            yield key, array[:-1]
            yield key, array.reshape(1, *array.shape)
        if array.dtype.kind == "f":
            yield key, array.astype(np.float32)
            broken = array.copy()
            broken.flat[-1 if array.ndim == 1 else 0] = np.nan
            yield key, broken
        if key.startswith("workspace.") and array.dtype == np.int64 and "work.work" not in key:
            for wrong in (-1, 12, 2**40):
                yield key, np.append(array, wrong)
    for key in ("t", "gradient_evaluations", "lmo_calls", "projections"):
        for wrong in (np.array(-1), np.array(1.5), np.array("x")):
            yield key, wrong
    for key in ("cpu_seconds", "wall_seconds"):
        for wrong in (np.array(-1.0), np.array(np.nan), np.array(np.inf)):
            yield key, wrong
    if "step.sum_squares" in arrays:
        yield "step.sum_squares", -1 - arrays["step.sum_squares"]
        one = arrays["step.sum_squares"].copy()
        one[3] = -1e-9
        yield "step.sum_squares", one


@pytest.mark.parametrize("name", PATHS)
def test_every_array_of_a_state_is_checked(saved, name, tmp_path):
    tried = 0
    for key, wrong in changes(saved[name]):
        if "workspace.work" in key and wrong.dtype == np.int64 and wrong.shape == (3,):
            continue
        write_npz(tmp_path / "s.npz", {**saved[name], key: wrong})
        with pytest.raises(
            ValueError, match=r"state must come from a run of this problem|cannot be used"
        ):
            run(name, State.load(tmp_path / "s.npz"), 40)
        tried += 1
    assert tried > 15


@pytest.mark.parametrize("part", ["gradient", "step"])
@pytest.mark.parametrize("more", [[1.0, np.nan], [np.inf, 0.0], np.nan, [1j, 0.0]], ids=str)
def test_all_else_that_a_state_holds_is_finite(saved, part, more, tmp_path):
    fine = {f"{part}.some": np.array([1.0, 2.0]), f"{part}.word": np.array("w")}
    write_npz(tmp_path / "s.npz", {**saved["generic"], **fine})
    run("generic", State.load(tmp_path / "s.npz"), 21)
    write_npz(tmp_path / "s.npz", {**saved["generic"], f"{part}.more": np.array(more)})
    with pytest.raises(ValueError, match=rf"its {part}\.more must be finite"):
        run("generic", State.load(tmp_path / "s.npz"), 21)


def test_numbers_indices_and_arrays_that_are_expected():
    for found, kind in ((0, int), (5, int), (0.0, float), (5.0, float)):
        expect_number(found, "n", kind, kind(0), kind(5))
    for found, kind in ((True, int), (1, float), (1.0, int), (np.int64(1), int), (None, int),
                        (6, int), (-1, int), (np.nan, float), (5.1, float)):  # fmt: skip
        with pytest.raises(Damaged, match="its n must be a number from 0 to 5, got"):
            expect_number(found, "n", kind, kind(0), kind(5))
    expect_indices(np.array([2, 0, 1]), "i", 3)
    expect_indices(np.zeros(0, np.int64), "i", 3)
    for wrong in ([0, 3], [-1, 0], [1, 1], [0.0, 1.0], [[0], [1]], 1):
        with pytest.raises(Damaged, match="its i must be"):
            expect_indices(np.array(wrong), "i", 3)
    expect(np.ones(2), "a", np.zeros(2))
    for wrong in (np.ones(3), np.ones(2, np.float32), np.array([1.0, np.nan]), [1.0, 1.0],
                  np.array([-np.inf, 1.0])):  # fmt: skip
        with pytest.raises(Damaged, match="its a must be"):
            expect(wrong, "a", np.zeros(2))


def test_the_sentence_names_the_array(saved, tmp_path):
    write_npz(tmp_path / "s.npz", {**saved["lazy"], "gradient.alpha": np.zeros(51)})
    message = (
        "state must come from a run of this problem: its gradient.alpha must be float64 of shape "
        "(50,), got float64 of shape (51,); load an undamaged one, or start anew."
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        run("lazy", State.load(tmp_path / "s.npz"), 40)


@pytest.mark.parametrize("name", ["lazy", "fused"])
def test_a_workspace_of_another_x_is_refused(saved, name, tmp_path):
    """Inside every range, but not what this state's x belongs to."""
    arrays = dict(saved["lazy"])
    table = arrays["workspace.table"].copy()
    table[0, 0] += 1.0
    write_npz(tmp_path / "s.npz", {**arrays, "workspace.table": table})
    with pytest.raises(ValueError, match=r"workspace\.table must be of the same x"):
        run("lazy", State.load(tmp_path / "s.npz"), 40)
    table = arrays["workspace.table"].copy()
    table.view(np.uint64)[3, 3] = 2**60
    write_npz(tmp_path / "s.npz", {**arrays, "workspace.table": table})
    with pytest.raises(ValueError, match=r"workspace\.table must be of iterations up to 20"):
        run("lazy", State.load(tmp_path / "s.npz"), 40)


@pytest.mark.parametrize("capacity", [0, -1, 2**30, 2**39])
def test_a_list_that_memory_could_not_hold_is_refused(saved, capacity, tmp_path):
    write_npz(tmp_path / "s.npz", {**saved["lazy"], "workspace.capacity": np.array(capacity)})
    with pytest.raises(ValueError, match=r"its workspace\.capacity must be"):
        run("lazy", State.load(tmp_path / "s.npz"), 40)


@pytest.mark.parametrize(
    ("name", "key", "wrong"),
    [("projected", "level", np.nan), ("projected", "level", 3), ("lazy", "threshold", -1.0),
     ("lazy", "threshold", np.nan), ("lazy", "level", -1.0), ("lazy", "level", np.nan),
     ("lazy", "capacity", 4096.0)],
)  # fmt: skip
def test_every_number_of_a_workspace_is_checked(saved, name, key, wrong, tmp_path):
    write_npz(tmp_path / "s.npz", {**saved[name], f"workspace.{key}": np.array(wrong)})
    with pytest.raises(ValueError, match=rf"its workspace\.{key} must be"):
        run(name, State.load(tmp_path / "s.npz"), 40)


@pytest.mark.parametrize("name", ["lazy", "ORGFW"])
def test_missing_arrays(saved, name, tmp_path):
    for key in saved[name]:
        left = {k: v for k, v in saved[name].items() if k != key}
        write_npz(tmp_path / "s.npz", left)
        if key.startswith("workspace."):
            continue  # a state without one goes on to rounding error
        with pytest.raises(ValueError, match=r"state|cannot be used"):
            run(name, State.load(tmp_path / "s.npz"), 40)


@pytest.mark.parametrize(
    ("records", "problem"),
    [(np.zeros((2, 3)), None), (np.array(["a"]), None), (np.zeros((3, 12)), None), (None, "{"),
     (None, "[1]"), (None, '{"objective": 1}'), (None, "7"), (None, "[" * 100_000),
     (np.arange(24).reshape(2, 12), None), (np.zeros((1, 13)), None),
     (np.array([[0.0] * 12, [21.0] * 12]), None)],
    ids=range(11),
)  # fmt: skip
def test_damaged_traces_and_descriptions(saved, records, problem, tmp_path):
    arrays = dict(saved["lazy"])
    if records is not None:
        arrays["records"] = records
    if problem is not None:
        arrays["problem"] = np.array(problem)
    write_npz(tmp_path / "s.npz", arrays)
    with pytest.raises(ValueError, match=r"state|cannot be used") as error:
        run("lazy", State.load(tmp_path / "s.npz"), 40)
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize("torn", [0, 0.0, "", [False], [True, False]], ids=repr)
def test_whether_a_state_is_whole_is_yes_or_no(saved, torn, tmp_path):
    write_npz(tmp_path / "s.npz", {**saved["generic"], "torn": np.array(torn)})
    with pytest.raises(ValueError, match="only a part of a saved state"):
        State.load(tmp_path / "s.npz")


@pytest.mark.parametrize("name", ["fused", "lazy"])
def test_a_path_leaves_no_workspace_to_another(saved, name, tmp_path):
    write_npz(tmp_path / "s.npz", saved[name])
    state = State.load(tmp_path / "s.npz")
    assert state.workspace
    f, ball = problem()
    there = adafw.minimize(f, ball, PATHS[name](), state=state, max_iterations=30, path="generic")
    assert not there.state.workspace, "it is out of date"
    back = run(name, there.state, 40)
    np.testing.assert_allclose(back.x, run(name, n=40).x, atol=1e-9)


def test_any_damage_of_a_file_gives_a_state_or_a_sentence(saved, tmp_path):
    path = tmp_path / "s.npz"
    write_npz(path, saved["lazy"])
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(200):
        place = int(rng.integers(len(whole)))
        change = [bytes([int(rng.integers(256))]), b"", b"\xff" * 5][int(rng.integers(3))]
        path.write_bytes(whole[:place] + change + whole[place + 1 :])
        try:
            State.load(path)
        except ValueError as error:
            refused += 1
            assert "s.npz" in str(error)  # noqa: PT017
            assert len(str(error).splitlines()) == 1  # noqa: PT017
    assert refused > 150


def test_files_that_are_no_states(tmp_path):
    for content in (b"", b"PK", b"not a zip file at all"):
        (tmp_path / "s").write_bytes(content)
        with pytest.raises(
            ValueError, match="s must be a saved state of adafw, got something else"
        ):
            State.load(tmp_path / "s")
    np.savez(tmp_path / "s.npz", x=np.zeros(3))
    with pytest.raises(ValueError, match="must be a saved state of adafw"):
        State.load(tmp_path / "s.npz")
    with pytest.raises(FileNotFoundError):
        State.load(tmp_path / "missing")


SETS = [
    adafw.L1Ball, adafw.L2Ball, adafw.LInfBall, adafw.Simplex, adafw.UnitSimplex,
    adafw.NuclearBall, adafw.SpectralBall, lambda r: adafw.LpBall(r, 3),
    lambda r: adafw.KSparse(r, 2), lambda r: adafw.GroupBall(r, [0, 0, 1]),
    lambda r: adafw.Box(-r, r),
]  # fmt: skip


@pytest.mark.parametrize("make", SETS)
def test_sizes_that_no_float_can_square_are_refused(make):
    with pytest.raises(ValueError, match=r"must be at most 1e\+151"):
        make(1.7e308)
    with pytest.raises((ValueError, TypeError)):
        make(10**400)


@pytest.mark.parametrize("huge", [10**400, -(10**400), 10**5000], ids=["long", "minus", "longer"])
def test_integers_beyond_all_floats(huge):
    with pytest.raises(
        ValueError, match="radius must be a number that is finite and > 0, got"
    ) as e:
        adafw.L1Ball(huge)
    assert len(str(e.value)) < 200


@pytest.mark.parametrize("radius", [1e150, 1e100, 1e-100])
@pytest.mark.parametrize("make", [adafw.L1Ball, adafw.L2Ball, adafw.LInfBall])
def test_the_largest_sizes_give_finite_runs(make, radius):
    rng = np.random.default_rng(0)
    f = adafw.LinearModel(
        rng.normal(size=(20, 4)) / radius, rng.normal(size=20), adafw.losses.Squared()
    )
    r = adafw.minimize(f, make(radius), adafw.AdaSFW(learning_rate=1.0), max_iterations=20)
    assert np.isfinite(r.x).all()
    assert np.isfinite(r.gap)
    assert r.trace[-1].violation < 1e-9
