"""What a claim is, the verdicts there are, and how the claims of a kind get their names."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from adafw.experiments.outcome import Outcome
from adafw.experiments.spec import Case, Method

HOLDS, FAILS, UNDECIDED, UNTESTED = "holds", "fails", "undecided", "not tested"

#: Verdict and evidence, or None where the experiment has nothing to judge by.
Finding = tuple[str, str] | None


@dataclass(frozen=True)
class Claim:
    """A statement, where the paper makes it, the verdict and the numbers behind it."""

    problem: str
    statement: str
    source: str
    verdict: str
    evidence: str


class Claims(dict[str, Callable[[Outcome, Case[Method]], Claim]]):
    """The claims that a file may name: name -> judge of (outcome, case)."""

    def named(
        self, name: str, statement: str, source: str
    ) -> Callable[
        [Callable[[Outcome, Case[Method]], Finding]], Callable[[Outcome, Case[Method]], Finding]
    ]:
        """Makes a function that finds verdict and evidence the judge of the claim `name`."""

        def register(find: Callable[[Outcome, Case[Method]], Finding]) -> Callable[..., Finding]:
            def judge(outcome: Outcome, case: Case[Method]) -> Claim:
                verdict, evidence = find(outcome, case) or (UNTESTED, "")
                return Claim(case.name, statement, source, verdict, evidence)

            self[name] = judge
            return find

        return register

    def judge(self, outcome: Outcome) -> list[Claim]:
        """All claims that the file names, for each of its cases."""
        spec = outcome.spec
        return [self[name](outcome, case) for case in spec.cases for name in spec.claims]


def check_names(claims: Iterable[str], known: Iterable[str]) -> None:
    """Refuses a claim that nobody can judge, before any work."""
    unknown = sorted(set(claims) - set(known))
    if unknown:
        raise ValueError(f"claims must be among {', '.join(known)}, got {unknown[0]!r}.")
