"""The numbers by which kernels know losses, estimates and steps; importing them needs no numba."""

# Losses.
SQUARED, LOGISTIC, SQUARED_HINGE = 0, 1, 2

# Estimates: line 2 of both templates.
CSFW, SVRF, SAGA = 0, 1, 2

# Steps: Template 1, Template 3, Algorithm 2.
FRANK_WOLFE, ADAPTIVE, PROJECTED = 0, 1, 2
