"""numba functions on plain arrays; they know no class of adafw."""
