"""Verdicts on claims in colour: a list's item that begins with one in bold gets it as a class."""

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

VERDICTS = ("holds", "grows", "fails", "reversed", "no advantage", "does not grow")


class Colours(SphinxTransform):
    """On the pages of experiments only; everywhere else bold words are just that."""

    default_priority = 700

    def apply(self, **given: object) -> None:
        """`holds` and `no-advantage` are what site.css knows."""
        if not self.env.docname.startswith("reproduction/"):
            return
        for item in self.document.findall(nodes.list_item):
            first = next(iter(item.findall(nodes.strong)), None)
            if first is not None and first.astext() in VERDICTS:
                first["classes"].append(nodes.make_id(first.astext()))


def setup(app: Sphinx) -> dict[str, bool]:
    """Registers the transform."""
    app.add_transform(Colours)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
