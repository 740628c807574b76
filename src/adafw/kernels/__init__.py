"""Compiled loops over plain arrays. They know no class of adafw; importing one imports numba."""
