"""scikit-learn estimators: linear models whose coefficients lie in a set, with a certificate."""

from adafw.sklearn.classifiers import FrankWolfeClassifier
from adafw.sklearn.regressors import FrankWolfeRegressor

__all__ = ["FrankWolfeClassifier", "FrankWolfeRegressor"]
