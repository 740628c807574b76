"""report.html: one self-contained page about a run."""

import re
from collections.abc import Mapping
from html import escape

from adafw.experiments.kinds import kind_of
from adafw.experiments.outcome import Outcome
from adafw.experiments.spec import Case, Method
from adafw.experiments.verdicts import Claim
from adafw.page import definitions, html_table, page, zoomed
from adafw.typing import Json


def render(outcome: Outcome, claims: list[Claim], svg: str) -> str:
    """The whole page; nothing in it is fetched from anywhere."""
    spec, kind = outcome.spec, kind_of(outcome.spec)
    body = [
        f"<h1>{escape(spec.title)}</h1>",
        f'<p class="quiet">{escape(_subtitle(outcome))}</p>',
        *[
            f'<p class="warn">Stand-in data: {escape(about["label"])}</p>'
            for about in outcome.data.values()
            if about["is_stand_in"]
        ],
        zoomed(_inline(svg)),
        "<h2>The paper's claims, judged by this run</h2>",
        _claims_table(claims, len(spec.cases) > 1, kind.rule),
        *kind.tables(outcome),
        "<h2>Settings</h2>",
        *[_settings_table(outcome, case) for case in spec.cases],
        _notes(outcome),
        "<h2>Environment</h2>",
        _environment(outcome.environment),
    ]
    return page(spec.title, body)


def _inline(svg: str) -> str:
    """SVG to stand inside HTML: no XML head, and a size that follows the page."""
    head, rest = svg[svg.index("<svg") :].split(">", 1)
    return re.sub(r' (width|height)="[^"]*"', "", head) + ">" + rest


def _subtitle(outcome: Outcome) -> str:
    spec = outcome.spec
    budget = ", ".join(f"{key} = {value}" for key, value in spec.budget.items())
    seeds = ", ".join(map(str, spec.seeds))
    return f"{spec.form} form; each run {budget}; seeds {seeds}; {outcome.environment['date']}"


def _claims_table(claims: list[Claim], several: bool, rule: str) -> str:
    if not claims:
        return "<p>The experiment's file names no claims.</p>"
    head = ["Verdict", *(["Problem"] if several else []), "Claim", "Paper", "Here"]
    rows = []
    for claim in claims:
        badge = f'<span class="verdict {claim.verdict.split()[0]}">{escape(claim.verdict)}</span>'
        problem = [escape(claim.problem)] if several else []
        # Browsers break lines at hyphens, in the middle of 1e-05 too.
        evidence = re.sub(r"(?<=\de)-(?=\d)", "\u2011", escape(claim.evidence))
        rest = (escape(claim.statement), escape(claim.source), evidence)
        rows.append([badge, *problem, *rest])
    return html_table(head, rows, kind="claims") + f'<p class="quiet">{rule}</p>'


def _settings_table(outcome: Outcome, case: Case[Method]) -> str:
    about = outcome.data[case.name]
    what = about["label"] if about["is_stand_in"] else f"{about['label']}, {about['description']}"
    text = f"{what}; {case.words}"
    rows = []
    for curve in outcome.of(case):
        method = curve.method
        code = f"; {curve.path} code" if curve.path else ""
        parts = f"<br><small>{escape(method.parts + code)}</small>"
        rows.append([escape(method.label), escape(method.setting) + parts, escape(method.note)])
    return f"<p>{escape(text)}</p>" + html_table(["Algorithm", "Settings", "Chosen by"], rows)


def _notes(outcome: Outcome) -> str:
    items = "".join(f"<li>{escape(note)}</li>" for note in outcome.spec.notes)
    return f"<ul>{items}</ul>" if items else ""


def _environment(table: Mapping[str, Json]) -> str:
    flat = {**{k: v for k, v in table.items() if k != "packages"}, **table["packages"]}
    return definitions(flat)
