"""Tables of a report."""

from html import escape
from typing import Any


def html_table(head: list[str], rows: list[list[str]], numbers: Any = (), best: int = -1) -> str:
    """A table; the columns `numbers` are set to the right, the row `best` is tinted."""

    def cell(tag: str, i: int, text: str) -> str:
        return f"<{tag}{' class=n' if i in numbers else ''}>{text}</{tag}>"

    top = "".join(cell("th", i, escape(text)) for i, text in enumerate(head))
    lines = "".join(
        f"<tr{' class=best' if n == best else ''}>"
        + "".join(cell("td", i, text) for i, text in enumerate(row))
        + "</tr>"
        for n, row in enumerate(rows)
    )
    return f'<div class="scroll"><table><tr>{top}</tr>{lines}</table></div>'
