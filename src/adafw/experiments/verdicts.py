"""What a claim is, and the verdicts there are."""

from dataclasses import dataclass

HOLDS, FAILS, UNDECIDED, UNTESTED = "holds", "fails", "undecided", "not tested"


@dataclass(frozen=True)
class Claim:
    """A statement, where the paper makes it, the verdict and the numbers behind it."""

    problem: str
    statement: str
    source: str
    verdict: str
    evidence: str
