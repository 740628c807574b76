"""scikit-learn estimators: linear models whose coefficients lie in a set, with a certificate."""

from adafw.sklearn.classifiers import FrankWolfeClassifier
from adafw.sklearn.completion import MatrixCompletion
from adafw.sklearn.displays import CoefficientDisplay, ConvergenceDisplay, RadiusPathDisplay
from adafw.sklearn.path import RadiusPath, matching_penalty, matching_radius, radius_path
from adafw.sklearn.regressors import FrankWolfeRegressor
from adafw.sklearn.search import FrankWolfeClassifierCV, FrankWolfeRegressorCV

__all__ = [
    "CoefficientDisplay",
    "ConvergenceDisplay",
    "FrankWolfeClassifier",
    "FrankWolfeClassifierCV",
    "FrankWolfeRegressor",
    "FrankWolfeRegressorCV",
    "MatrixCompletion",
    "RadiusPath",
    "RadiusPathDisplay",
    "matching_penalty",
    "matching_radius",
    "radius_path",
]
