"""report.html: one self-contained page about a run."""

import re
from collections.abc import Mapping
from html import escape
from typing import Any

from adafw.experiments.html import html_table
from adafw.experiments.kinds import kind_of
from adafw.experiments.outcome import Outcome
from adafw.experiments.spec import Case, Method
from adafw.experiments.verdicts import Claim

_STYLE = """
:root { --ink: #1c1e21; --quiet: #60656c; --rule: #e3e5e8; --paper: #ffffff; --tint: #f6f7f9; }
* { box-sizing: border-box; }
body { margin: 0; background: var(--tint); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
main { max-width: 1180px; margin: 0 auto; padding: 32px 28px 64px; background: var(--paper); }
h1 { font-size: 26px; line-height: 1.25; margin: 0 0 4px; }
h2 { font-size: 18px; margin: 40px 0 12px; padding-top: 16px; border-top: 1px solid var(--rule); }
h3 { font-size: 15px; margin: 24px 0 8px; }
p, ul { max-width: 78ch; } .quiet { color: var(--quiet); }
.warn { color: #8a1020; background: #fdecee; border-left: 4px solid #c62839; padding: 8px 12px;
  max-width: none; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 14px;
  font-variant-numeric: tabular-nums; }
th { text-align: left; font-weight: 600; color: var(--quiet); white-space: nowrap; }
th, td { padding: 6px 10px; border-bottom: 1px solid var(--rule); vertical-align: top; }
td.n, th.n { text-align: right; white-space: nowrap; } small { color: var(--quiet); }
tr.best td { background: #fff6ea; }
.verdict { display: inline-block; padding: 1px 9px; border-radius: 10px; font-size: 13px;
  font-weight: 600; white-space: nowrap; }
.holds { background: #e2f4e6; color: #14602a; } .fails { background: #fde4e6; color: #8a1020; }
.grows { background: #e2f4e6; color: #14602a; }
.reversed, .no { background: #fde4e6; color: #8a1020; }
.does { background: #fff1d6; color: #7a4a00; }
.undecided, .not { background: #eceef1; color: #454a52; }
figure { margin: 0; } figure svg { width: 100%; height: auto; display: block; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 4px 18px; margin: 0; }
dt { color: var(--quiet); } dd { margin: 0; overflow-wrap: anywhere; }
@media print { body { background: none; } main { padding: 0; } }
"""


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
        f"<figure>{_inline(svg)}</figure>",
        "<h2>The paper's claims, judged by this run</h2>",
        _claims_table(claims, len(spec.cases) > 1, kind.rule),
        *kind.tables(outcome),
        "<h2>Settings</h2>",
        *[_settings_table(outcome, case) for case in spec.cases],
        _notes(outcome),
        "<h2>Environment</h2>",
        _environment(outcome.environment),
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(spec.title)}</title><style>{_STYLE}</style></head>"
        f"<body><main>{''.join(body)}</main></body></html>\n"
    )


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
    return html_table(head, rows) + f'<p class="quiet">{rule}</p>'


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


def _environment(table: Mapping[str, Any]) -> str:
    flat = {**{k: v for k, v in table.items() if k != "packages"}, **table["packages"]}
    items = "".join(
        f"<dt>{escape(str(key).replace('_', ' '))}</dt><dd>{escape(str(value))}</dd>"
        for key, value in flat.items()
    )
    return f"<dl>{items}</dl>"
