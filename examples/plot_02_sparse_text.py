"""
A text classifier with a word budget
====================================

Which library does a page of documentation come from? We take the docstrings of NumPy and of SciPy,
which are on every machine that runs this, and hide the two names. A model with a weight for each
of thousands of words would do well, and nobody could read it.

So we give it a *budget*: the absolute weights may sum to so much, no more. The l1 ball then picks
the words for us. The question that every such model raises is how large the budget should be.
"""

import re
from importlib import import_module

import numpy as np
from matplotlib import pyplot as plt
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import train_test_split

from adafw.sklearn import FrankWolfeClassifier, radius_path

MODULES = [
    "numpy",
    "numpy.linalg",
    "numpy.fft",
    "numpy.polynomial.polynomial",
    "numpy.random",
    "scipy.linalg",
    "scipy.signal",
    "scipy.sparse",
    "scipy.optimize",
    "scipy.special",
    "scipy.interpolate",
    "scipy.spatial.distance",
    "scipy.integrate",
]
texts, origin = [], []
for name in MODULES:
    module = import_module(name)
    for thing in (getattr(module, n) for n in sorted(dir(module)) if n[0] != "_"):
        text = getattr(thing, "__doc__", None) if callable(thing) else None
        if text and len(text) > 300 and text not in texts:
            texts.append(text)
            origin.append(name.split(".")[0])
hidden = [re.sub(r"(?i)\b(numpy|scipy|np|sp|versionadded|versionchanged)\b", " ", t) for t in texts]

# %%
# Words become numbers as usual (weighted by rarity, each page of norm 1), in a sparse matrix that
# stays sparse. Then one call fits a whole path of budgets, each model starting from the last.

words = TfidfVectorizer(token_pattern=r"[a-z]{3,}", min_df=3, stop_words="english")
X = words.fit_transform(hidden)
y = np.array(origin)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=0)
path = radius_path(
    X_train,
    y_train,
    radii=np.geomspace(3, 3000, 11),
    X_test=X_test,
    y_test=y_test,
    estimator=FrankWolfeClassifier(tol=1e-2),
)
print(f"{X.shape[0]} pages, {X.shape[1]} words, {np.mean(y == 'numpy'):.0%} of the pages NumPy's")
enough = next(i for i, s in enumerate(path.scores) if s >= max(path.scores) - 0.03)
chosen = path.models[enough]
print(
    f"best: {max(path.scores):.1%} of unseen pages right; with a budget of {chosen.radius:.0f}, "
    f"{path.nonzeros[enough]} words, {path.scores[enough]:.1%}"
)

# %%
# The first words buy most of the accuracy, and then hundreds more buy little. We take the smallest
# budget that is within three points of the best: a model that one can read aloud.

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
left.plot(path.radii, path.scores, "o-", color="C0")
left.axvline(chosen.radius, color="gray", linestyle=":")
left.set(xscale="log", xlabel="budget: sum of absolute weights", ylabel="unseen pages right")
counts = left.twinx()
counts.plot(path.radii, path.nonzeros, "s--", color="C1")
counts.set(yscale="log", ylabel="words used", title="What a budget buys")
counts.yaxis.label.set_color("C1")
left.yaxis.label.set_color("C0")

coef, names = chosen.coef_[0], words.get_feature_names_out()
order = np.r_[np.argsort(coef)[:9], np.argsort(coef)[-9:]]
right.barh(names[order], coef[order], color=np.where(coef[order] < 0, "C2", "C3"))
right.set(
    xlabel=f"{chosen.classes_[0]}  <-  weight  ->  {chosen.classes_[1]}",
    title=f"The telltale words at budget {chosen.radius:.0f}",
)
plt.show()
