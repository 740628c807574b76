"""The command line: `adafw COMMAND`. A command is a module of `adafw.commands`, loaded when run.

Exit codes: 0 done; 1 the work failed (data missing, a run that broke); 2 wrong usage or bad input;
130 interrupted from the keyboard, after everything finished so far was kept.
"""

import sys
from importlib import import_module

import click

from adafw import __version__

#: Command -> its line of help. To add one: this line, and `command` in adafw.commands.<name>.
COMMANDS = {
    "convert": "Convert LIBSVM text to parts, which may be larger than memory.",
    "fit": "Fit a linear model under a constraint to a data file.",
    "info": "Say what a model file holds, or what is installed.",
    "predict": "Predict with a model, file in, file out, in bounded memory.",
    "reproduce": "Redo an experiment of the paper, or your own: figures, tables, a report.",
    "score": "Score a model on a data file.",
    "tune": "Search a learning rate as the paper does.",
}


class Lazy(click.Group):
    """A group that imports a command only to run it or to show its help."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        return import_module(f"adafw.commands.{cmd_name}").command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name]) for name in self.list_commands(ctx)])


@click.group(
    cls=Lazy,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 done, 1 failed, 2 wrong usage or bad input, 130 interrupted.",
)
@click.version_option(__version__, message="adafw %(version)s")
def group() -> None:
    """Projection-free optimisation with adaptive gradients."""


def main(arguments: list[str] | None = None) -> object:
    """Runs a command; bad input ends with one sentence, not a traceback."""
    try:
        return group.main(arguments, prog_name="adafw", standalone_mode=False)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("Interrupted.", err=True)
        sys.exit(130)
    except MemoryError as error:  # numpy says how much was asked for
        reason = " ".join(str(error).split()) or "it was asked for more than there is"
        click.echo(f"Error: the memory is not enough: {reason.rstrip('.')}.", err=True)
        sys.exit(1)
    except OSError as error:  # missing files, no permission, a full disk
        click.echo(f"Error: {error}", err=True)
        sys.exit(1)
    except (ValueError, TypeError) as error:
        from adafw.commands.options import in_options

        click.echo(f"Error: {in_options(str(error))}", err=True)
        sys.exit(2)
