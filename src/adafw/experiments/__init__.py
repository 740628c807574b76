"""Experiments: a declarative file in, traces, figures and a report out."""

from adafw.experiments.load import load_spec, names
from adafw.experiments.reproduce import reproduce
from adafw.experiments.spec import Spec

__all__ = ["Spec", "load_spec", "names", "reproduce"]
