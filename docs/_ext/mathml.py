"""Formulas as MathML, which browsers draw by themselves: no script, no font, no network."""

import re
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx


def formula(latex: str, display: str) -> str:
    """One <math> element; `display` is "inline" or "block"."""
    return re.sub(r"\s*\n\s*", "", convert(latex, display=display))


def inline(self: Any, node: nodes.math) -> None:
    """A formula in the text."""
    self.body.append(f'<span class="math">{formula(node.astext(), "inline")}</span>')
    raise nodes.SkipNode


def block(self: Any, node: nodes.math_block) -> None:
    """A formula on a line of its own; wide ones scroll on a phone."""
    self.body.append(f'<div class="math-block">{formula(node.astext(), "block")}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Registers the renderer."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
