"""Radius paths, and radii translated into penalties."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from adafw.sklearn import (
    FrankWolfeClassifier,
    FrankWolfeRegressor,
    matching_penalty,
    matching_radius,
    radius_path,
)
from adafw.sklearn.path import RadiusPath, _fitted, _nonzeros
from sklearn import datasets


@pytest.fixture(scope="module")
def cancer():
    X, y = datasets.load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.mark.parametrize("C", [0.01, 0.1])
def test_radius_of_a_penalty_is_the_norm_of_its_solution(cancer, l1_logistic, C):
    X, y = cancer
    model = l1_logistic(C=C, solver="saga", tol=1e-7, max_iter=50_000).fit(X, y)
    radius = matching_radius(X, y, C)
    assert radius == pytest.approx(np.abs(model.coef_).sum(), rel=1e-3)
    assert matching_penalty(X, y, radius) == pytest.approx(C, rel=1e-3)


def test_squared_hinge_and_weights(cancer):
    X, y = cancer
    weight = np.where(y == 1, 1.0, 2.0)
    C = matching_penalty(X, y, 0.8, loss="squared_hinge", fit_intercept=False, sample_weight=weight)
    model = LinearSVC(penalty="l1", dual=False, C=C, fit_intercept=False, tol=1e-8, max_iter=10_000)
    model.fit(X, y, sample_weight=weight)
    assert np.abs(model.coef_).sum() == pytest.approx(0.8, rel=1e-4)


def test_lasso_convention():
    X, y = datasets.load_diabetes(return_X_y=True)
    C = matching_penalty(X, y, 500.0, loss="squared")
    lasso = Lasso(alpha=1 / (2 * len(y) * C), tol=1e-10, max_iter=100_000).fit(X, y)
    assert np.abs(lasso.coef_).sum() == pytest.approx(500.0, rel=1e-6)
    assert matching_radius(X, y, C, loss="squared") == pytest.approx(500.0, rel=1e-4)


def test_ends_of_the_range():
    X, y = datasets.load_diabetes(return_X_y=True)
    assert matching_penalty(X, y, 1e6, loss="squared") == np.inf
    with pytest.raises(ValueError, match="below which every coefficient is 0"):
        matching_radius(X, y, 1e-9, loss="squared")
    # So weak a penalty is none: the radius is the norm of least squares.
    free = np.abs(np.linalg.lstsq(X - X.mean(axis=0), y - y.mean(), rcond=None)[0]).sum()
    assert matching_radius(X, y, 1e9, loss="squared") == pytest.approx(free, rel=1e-3)
    with pytest.raises(ValueError, match="two classes"):
        matching_penalty(*datasets.load_iris(return_X_y=True), 1.0)
    with pytest.raises(ValueError, match="radius must be"):
        matching_penalty(X, y, -1.0, loss="squared")


def test_path_equals_single_fits(cancer):
    X, y = cancer
    path = radius_path(X[:400], y[:400], radii=[4.0, 0.5, 2.0], X_test=X[400:], y_test=y[400:])
    np.testing.assert_array_equal(path.radii, [0.5, 2.0, 4.0])
    assert path.coefs.shape == (3, 30)
    for k, radius in enumerate(path.radii):
        single = FrankWolfeClassifier(radius=radius).fit(X[:400], y[:400])
        assert path.values[k] <= single.value_ + path.gaps[k]
        assert path.gaps[k] <= 1e-4 * path.values[k]
        assert path.scores[k] == path.models[k].score(X[400:], y[400:])
        assert path.nonzeros[k] == np.count_nonzero(path.coefs[k])
    assert (np.diff(path.values) < 0).all()
    assert path.best.radius == path.radii[np.argmax(path.scores)]


def test_a_path_is_read_by_radius_and_by_score():
    """At a radius that begins a model, that one counts; of equal scores, the smallest radius."""
    numbers = np.array([1.0, 2.0, 4.0])
    path = RadiusPath(
        radii=numbers, coefs=numbers, intercepts=numbers, values=numbers, gaps=numbers,
        nonzeros=numbers, scores=np.array([0.1, 0.7, 0.7]), models=("a", "b", "c"),
        uppers=np.array([2.0, 4.0, 5.0]), bound=0.1,
    )  # fmt: skip
    assert [path.at(r) for r in (1.0, 1.9, 2.0, 3.9, 4.0, 5.0)] == ["a", "a", "b", "b", "c", "c"]
    for outside in (0.99, 5.01, np.nan):
        with pytest.raises(ValueError, match="radius must be between 1 and 5"):
            path.at(outside)
    assert path.best == "b"


def test_what_rounding_leaves_is_no_coefficient():
    assert _nonzeros(np.array([0.0, 1e-14, -1e-12, 3.0]), 100.0) == 2
    assert _nonzeros(np.array([0.0, 1e-14, -1e-12, 3.0]), 1.0) == 3


def test_a_solution_a_little_inside_has_no_penalty():
    """Least squares in a ball that is a thousandth larger: nothing but rounding holds it back."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 3)), rng.normal(size=30)
    norm = np.abs(np.linalg.lstsq(X, y, rcond=None)[0]).sum()
    how = dict(loss="squared", fit_intercept=False)
    assert matching_penalty(X, y, 1.001 * norm, **how) == np.inf
    assert np.isfinite(matching_penalty(X, y, 0.999 * norm, **how))


@pytest.mark.filterwarnings("ignore:the radius:UserWarning")
def test_path_chooses_the_kind_of_model():
    X, y = datasets.load_diabetes(return_X_y=True)
    path = radius_path(X, y, radii=[10.0, 1000.0])
    assert isinstance(path.models[0], FrankWolfeRegressor)
    X, y = datasets.load_iris(return_X_y=True)
    path = radius_path(X, y, radii=[1.0, 2.0], estimator=FrankWolfeClassifier(constraint="l2"))
    assert path.coefs.shape == (2, 3, 4)
    assert path.models[1].constraint == "l2"
    with pytest.raises(ValueError, match="radii must be"):
        radius_path(X, y, radii=[0.0])


def test_plot(cancer):
    import matplotlib

    matplotlib.use("Agg")
    path = radius_path(*cancer, radii=[0.5, 5.0])
    axes = path.plot()
    lines = axes[0].get_lines()  # the last marks the best radius
    assert len(lines) == np.count_nonzero(np.abs(path.coefs).max(axis=0)) + 1
    np.testing.assert_array_equal(axes[1].get_lines()[0].get_ydata(), path.scores)
    matplotlib.pyplot.close("all")


@pytest.mark.parametrize("constraint", ["l1", "l2", "linf"])
@pytest.mark.parametrize("eps", [0.1, 0.02])
def test_a_proven_path_is_good_between_its_radii(constraint, eps):
    """The bound against fits to a small tolerance at random radii."""
    X, y = datasets.load_diabetes(return_X_y=True)
    model = FrankWolfeRegressor(constraint=constraint)
    path = radius_path(X, y, eps=eps, estimator=model)
    assert path.bound == pytest.approx(eps * np.var(y))
    np.testing.assert_array_equal(path.uppers[:-1], path.radii[1:])
    assert len(path.radii) <= 2 / eps
    rng = np.random.default_rng(0)
    for radius in np.exp(rng.uniform(*np.log([path.radii[0], 2 * path.radii[-1]]), 12)):
        best = FrankWolfeRegressor(constraint=constraint, radius=radius, tol=1e-7)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            best.fit(X, y)
        near = path.at(radius)
        assert near.radius <= radius
        mean = np.mean((near.predict(X) - y) ** 2)
        assert mean == pytest.approx(near.value_, rel=1e-9)
        assert mean <= best.value_ + path.bound
    # Below the first radius, 0 is good enough.
    first = FrankWolfeRegressor(constraint=constraint, radius=path.radii[0], tol=1e-7).fit(X, y)
    assert np.var(y) <= first.value_ + path.bound * (1 + 1e-9)


def _monotone(g):
    """max of -<g, v> over -1 <= v_1 <= ... <= v_n <= 1: the best of the n + 1 steps."""
    steps = np.tril(np.full((len(g) + 1, len(g)), -2.0), -1) + 1
    return (-steps @ g).max()


#: -min <G, V> over the set of radius 1, G of shape (features, classes), by hand.
STEEPNESS = {
    "l1": lambda G: np.abs(G).max(),
    "l2": np.linalg.norm,
    "linf": lambda G: np.abs(G).sum(),
    "ksparse": lambda G: np.sort(np.abs(G).ravel())[-2:].sum(),
    "group": lambda G: np.linalg.norm(G, axis=1).max(),
    "nuclear": lambda G: np.linalg.norm(G, 2),
    "spectral": lambda G: np.linalg.norm(G, "nuc"),
    "nonnegative": lambda G: np.maximum(-G, 0).sum(),
    "unit_simplex": lambda G: np.maximum(-G, 0).max(axis=0).sum(),
    "monotone": lambda G: sum(map(_monotone, G.T)),
}


@pytest.mark.parametrize("constraint", STEEPNESS)
def test_the_bound_between_radii_by_hand_on_every_set_in_float32(constraint):
    """Convexity: f(x) - min over radius r <= <g, x> + r * steepness, at any r up to the next."""
    X, y = datasets.load_iris(return_X_y=True)
    X, truth = X.astype(np.float32), np.eye(3)[y]
    params = {"k": 2} if constraint == "ksparse" else None
    model = FrankWolfeClassifier(
        constraint=constraint, constraint_params=params, fit_intercept=False
    )
    path = radius_path(X, y, eps=0.1, estimator=model, radii=(0.05, 5.0))
    assert path.bound == pytest.approx(0.1 * np.log(3))
    for radius in np.random.default_rng(0).uniform(path.radii[0], path.uppers[-1].clip(max=5), 8):
        x = path.at(radius).coef_.T.astype(float)
        p = np.exp(X @ x)
        g = X.T.astype(float) @ (p / p.sum(axis=1, keepdims=True) - truth) / len(y)
        assert np.vdot(g, x) + radius * STEEPNESS[constraint](g) <= path.bound * (1 + 1e-6)


def test_a_path_ends_with_a_model_that_is_good_far_beyond_its_radius():
    """Where the set binds no more, a smaller gap is asked for, which proves so much more."""
    X, y = datasets.make_classification(300, 5, flip_y=0.3, random_state=0)
    path = radius_path(X, y, eps=0.1)
    assert np.abs(path.models[-1].coef_).sum() < 0.9 * path.radii[-1]
    assert path.uppers[-1] > 1000 * path.radii[-1]


def test_a_proven_path_of_several_classes_and_a_range():
    X, y = datasets.load_iris(return_X_y=True)
    path = radius_path(X, y, eps=0.05, radii=(1.0, 6.0), estimator=FrankWolfeClassifier())
    assert path.radii[0] == 1.0
    assert path.uppers[-1] >= 6.0
    for radius in (1.0, 2.3, 6.0):
        best = FrankWolfeClassifier(radius=radius, tol=1e-6).fit(X, y)
        assert path.at(radius).value_ <= best.value_ + path.bound
    with pytest.raises(ValueError, match="radius must be between 1 and"):
        path.at(0.5)
    with pytest.raises(ValueError, match=r"only a path of radius_path\(eps"):
        radius_path(X, y, radii=[1.0, 2.0]).at(1.5)
    with pytest.raises(ValueError, match="eps must be"):
        radius_path(X, y, eps=0.0)
    with pytest.raises(ValueError, match="eps needs a set that grows with its radius"):
        radius_path(X, y, eps=0.1, estimator=FrankWolfeClassifier(constraint="simplex"))
    with pytest.raises(ValueError, match="needs a model for eps=10"):
        radius_path(X, y, eps=10.0, radii=(0.1, 0.2))


def test_a_proven_path_may_be_of_one_radius(cancer):
    X, y = cancer
    path = radius_path(X[:80], y[:80], radii=(2.0, 2.0), eps=0.1)
    assert path.radii.tolist() == [2.0]
    assert path.at(2.0) is path.models[0]
    from_zero = radius_path(X[:80], y[:80], radii=(2.0, 0.0), eps=0.1)
    assert 0 < from_zero.radii[0] < from_zero.radii[-1] <= 2.0
    with pytest.raises(ValueError, match="radii must be numbers > 0"):
        radius_path(X[:80], y[:80], radii=(2.0, -1.0), eps=0.1)


def test_a_penalty_is_that_of_the_l1_norm_whatever_else_is_given():
    X, y = datasets.load_diabetes(return_X_y=True)
    wanted = matching_penalty(X, y, 500.0, loss="squared")
    assert matching_penalty(X, y, 500.0, loss="squared", constraint="l2") == wanted
    model = _fitted(X, y, 500.0, "squared", {"constraint": "l2", "max_epochs": 99}, None)
    assert (model.constraint, model.radius, model.tol) == ("l1", 500.0, 1e-9)
    assert (model.warm_start, model.max_epochs) == (True, 99)
    assert _fitted(X, y, 5.0, "squared", {}, model) is model
    assert model.radius == 5.0
    assert _fitted(X, y, 5.0, "squared", {"tol": 1e-3}, None).tol == 1e-3


def test_a_radius_beyond_all_bounds_is_refused():
    """Separable data in a unit so small that even a weak penalty asks for huge coefficients."""
    X, y = np.array([[-1.0], [1.0]] * 3) * 1e-13, np.array([0, 1] * 3)
    with pytest.raises(ValueError, match=r"C = 1e\+15 has no radius below 1e12"):
        matching_radius(X, y, 1e15, fit_intercept=False)


@pytest.mark.parametrize("unit", [1.0, 1e-6, 1e-10])
def test_a_radius_is_found_in_any_unit_of_the_features(unit):
    """C = (1 + exp(r)) / m by hand, also where radius 1 is too small to be told from 0."""
    X, y = np.array([[-1.0], [1.0]] * 3) * unit, np.array([0, 1] * 3)
    found = matching_radius(X, y, 100.0 / unit, fit_intercept=False)
    assert found * unit == pytest.approx(np.log(599), rel=1e-5)


def test_a_path_that_a_limit_ends_says_where():
    X, y = datasets.load_diabetes(return_X_y=True)
    short = FrankWolfeRegressor(algorithm="FW", max_epochs=12)
    with pytest.warns(ConvergenceWarning, match="the path ends at radius .*: a limit came before"):
        path = radius_path(X, y, eps=0.05, estimator=short)
    assert path.uppers[-1] < 10 * path.radii[-1]


def test_a_path_starts_each_model_where_the_last_ended(cancer):
    X, y = cancer
    radii = np.geomspace(1.0, 1.1, 4)
    given = FrankWolfeClassifier("squared_hinge", algorithm="FW", tol=1e-3)
    path = radius_path(X, y, radii=radii, estimator=given)
    alone = [FrankWolfeClassifier(**{**given.get_params(), "radius": r}).fit(X, y) for r in radii]
    assert path.models[0].n_iter_ == alone[0].n_iter_
    assert sum(m.n_iter_ for m in path.models) < sum(m.n_iter_ for m in alone)
    assert all(m.warm_start for m in path.models)
    assert not given.warm_start
    assert [m.radius for m in path.models] == radii.tolist()
    assert len({id(m) for m in path.models}) == 4


def test_paths_have_ten_radii_and_weights(cancer):
    X, y = cancer
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        path = radius_path(X[:60], y[:60])
    np.testing.assert_allclose(path.radii, np.geomspace(0.1, 100, 10))
    assert not path.held_out
    assert path.scores[3] == path.models[3].score(X[:60], y[:60])
    weight = np.where(np.arange(100) < 60, 1.0, 0.0)
    some = radius_path(X[:100], y[:100], radii=[1.0], sample_weight=weight)
    same = radius_path(X[:60], y[:60], radii=[1.0])
    np.testing.assert_allclose(some.coefs, same.coefs, rtol=1e-3, atol=1e-6)
    proven = [
        radius_path(X[:n], y[:n], radii=(0.5, 1.0), eps=0.2, sample_weight=w)
        for n, w in ((100, weight), (60, None))
    ]
    np.testing.assert_allclose(proven[0].radii, proven[1].radii, rtol=1e-3)
    test = radius_path(X[:60], y[:60], radii=(0.5, 1.0), eps=0.2, X_test=X[60:], y_test=y[60:])
    assert test.held_out
    assert test.scores[0] == test.models[0].score(X[60:], y[60:])
    for wrong in ([], [[1.0]], ["a"], [np.nan], [-1.0]):
        with pytest.raises(ValueError, match="radii must be numbers > 0"):
            radius_path(X, y, radii=wrong)
