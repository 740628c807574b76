"""Which combinations have a fast path."""

from adafw.fused.lazy import LazyL1
from adafw.fused.linear import LinearBalls
from adafw.solver import FastPath

#: In the order in which they are tried. To add one: a kernel, an adapter, a line here.
PATHS: list[FastPath] = [
    LazyL1(),
    LinearBalls(),
]
