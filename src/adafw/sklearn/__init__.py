"""scikit-learn estimators: linear models whose coefficients lie in a set, with a certificate."""

from adafw.sklearn.classifiers import FrankWolfeClassifier
from adafw.sklearn.displays import CoefficientDisplay, ConvergenceDisplay, RadiusPathDisplay
from adafw.sklearn.path import RadiusPath, matching_penalty, matching_radius, radius_path
from adafw.sklearn.regressors import FrankWolfeRegressor

__all__ = [
    "CoefficientDisplay",
    "ConvergenceDisplay",
    "FrankWolfeClassifier",
    "FrankWolfeRegressor",
    "RadiusPath",
    "RadiusPathDisplay",
    "matching_penalty",
    "matching_radius",
    "radius_path",
]
