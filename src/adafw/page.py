"""One self-contained page of HTML: its look, and tables on it. Nothing is fetched from anywhere."""

from collections.abc import Collection, Mapping, Sequence
from html import escape

_STYLE = """
:root { --ink: #1c1e21; --quiet: #60656c; --rule: #e3e5e8; --paper: #ffffff; --tint: #f6f7f9; }
* { box-sizing: border-box; }
body { margin: 0; background: var(--tint); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
main { max-width: 1180px; margin: 0 auto; padding: 32px 28px 64px; background: var(--paper); }
h1 { font-size: 26px; line-height: 1.25; margin: 0 0 4px; overflow-wrap: anywhere; }
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
.claims td:last-child { min-width: 24em; } .claims td:nth-last-child(3) { min-width: 14em; }
figure { margin: 0; } figure svg { width: 100%; height: auto; display: block; }
#zoom { position: absolute; opacity: 0; } label[for=zoom] { display: inline-block; cursor: pointer;
  color: var(--quiet); border: 1px solid var(--rule); border-radius: 6px; padding: 3px 10px; }
label[for=zoom]::after { content: "Enlarge the figure"; }
#zoom:focus-visible + label { outline: 2px solid #3b6fb6; }
#zoom:checked + label::after { content: "Fit the figure to the page"; }
#zoom:checked ~ .scroll svg { width: max(180%, 1500px); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 4px 18px; margin: 0; }
dt { color: var(--quiet); } dd { margin: 0; overflow-wrap: anywhere; }
@media (max-width: 600px) { main { padding: 20px 14px 40px; } h1 { font-size: 21px; }
  .claims, .claims tbody, .claims tr, .claims td { display: block; } .claims th { display: none; }
  .claims tr { padding: 10px 0; border-bottom: 1px solid var(--rule); }
  .claims td { border: none; padding: 2px 0; min-width: 0 !important; overflow-wrap: anywhere; }
  .claims td:nth-last-child(3) { font-weight: 600; }
  .claims td:nth-last-child(2) { color: var(--quiet); font-size: 13px; }
  .stacked, .stacked tbody, .stacked tr { display: block; } .stacked th { display: none; }
  .stacked tr { padding: 6px 0; border-bottom: 1px solid var(--rule); }
  .stacked td { display: flex; justify-content: space-between; gap: 16px; border: none;
    padding: 2px 0; white-space: normal; }
  .stacked td::before { content: attr(data-name); color: var(--quiet); }
  dl { grid-template-columns: 1fr; } dd { margin-bottom: 6px; } }
@media (prefers-color-scheme: dark) { :root { color-scheme: dark; --ink: #e6e8eb;
  --quiet: #a4abb4; --rule: #3a3f47; --paper: #1a1c1f; --tint: #24272b; }
  .warn { color: #ffc9cf; background: #4a1820; } tr.best td { background: #3d3220; }
  .holds, .grows { background: #173d22; color: #b4e8c1; }
  .fails, .reversed, .no { background: #4a1820; color: #ffc9cf; }
  .does { background: #463512; color: #ffdf9e; } .undecided, .not { background: #363b42;
  color: #cfd4da; } #zoom ~ .scroll svg { background: #ffffff; } }
@media print { body { background: none; } main { padding: 0; } }
"""


def page(title: str, body: Sequence[str], style: str = "") -> str:
    """The whole document; `style` is added to the common one."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}{style}</style></head>"
        f"<body><main>{''.join(body)}</main></body></html>\n"
    )


def html_table(
    head: list[str],
    rows: list[list[str]],
    numbers: Collection[int] = (),
    best: int = -1,
    kind: str = "",
) -> str:
    """A table; the columns `numbers` are set to the right, the row `best` is tinted.

    On a phone, `kind` "stacked" puts the cells of a row below one another, each with its name;
    "claims" does so without names, and gives the last column room.
    """

    def cell(tag: str, i: int, text: str) -> str:
        name = f' data-name="{escape(head[i])}"' if kind == "stacked" and tag == "td" else ""
        return f"<{tag}{' class=n' if i in numbers else ''}{name}>{text}</{tag}>"

    top = "".join(cell("th", i, escape(text)) for i, text in enumerate(head))
    lines = "".join(
        f"<tr{' class=best' if n == best else ''}>"
        + "".join(cell("td", i, text) for i, text in enumerate(row))
        + "</tr>"
        for n, row in enumerate(rows)
    )
    table = f'<table class="{kind}">' if kind else "<table>"
    return f'<div class="scroll">{table}<tr>{top}</tr>{lines}</table></div>'


def zoomed(svg: str) -> str:
    """A figure that fits the page, and at a touch is drawn large enough to scroll about in."""
    switch = '<input type="checkbox" id="zoom" aria-label="Enlarge the figure">'
    return f'<figure>{switch}<label for="zoom"></label><div class="scroll">{svg}</div></figure>'


def definitions(entries: Mapping[str, object]) -> str:
    """Names and what they stand for."""
    items = (
        f"<dt>{escape(key.replace('_', ' '))}</dt><dd>{escape(str(value))}</dd>"
        for key, value in entries.items()
    )
    return f"<dl>{''.join(items)}</dl>"
