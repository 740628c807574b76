"""Corrective steps: f is minimised again over all that was found of the set so far."""

from adafw.steps.corrective.step import CorrectiveStep

__all__ = ["CorrectiveStep"]
