"""A directive for the command line's own help: ```{adafw-help} fit```."""

from importlib import import_module

import click
from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx


class Help(Directive):
    """What `adafw COMMAND --help` prints, at the width of a page."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """One literal block."""
        name = self.arguments[0]
        command = import_module(f"adafw.commands.{name}").command
        with click.Context(command, info_name=f"adafw {name}", max_content_width=88) as context:
            text = command.get_help(context)
        return [nodes.literal_block(text, text, language="text")]


def setup(app: Sphinx) -> dict[str, bool]:
    """Registers the directive."""
    app.add_directive("adafw-help", Help)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
