"""Corrective steps: f is minimised again over all that was found of the set so far."""

from adafw.steps.corrective.step import (
    CorrectiveStep,
    corrects_atoms,
    corrects_jointly,
    corrects_on,
)

__all__ = ["CorrectiveStep", "corrects_atoms", "corrects_jointly", "corrects_on"]
