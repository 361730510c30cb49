"""The command line: one module for each command, imported only when that command runs."""

import importlib
import os
import sys

import click

from longshore import __version__
from longshore.errors import UserError

# What `longshore --help` lists, without importing any of it.
_COMMANDS = {
    "agent": "Show agents, or write the skeleton of a new one.",
    "annotate": "Write measurements of the nodes into their annotations.",
    "config": "Check configuration files.",
    "conformance": "Compare the engine with recorded decisions of kube-scheduler 1.36.3.",
    "controller": "Fire the triggers of pod sets whose quiet time is over.",
    "demo": "Schedule pods on a simulated cluster, in the terminal.",
    "dev": "Run a real local control plane for development and tests.",
    "explain": "Explain why a pod is on its node, or why it has no node.",
    "extender": "Serve agents to a stock kube-scheduler over HTTP.",
    "pin": "Pin a pod to a node, so that it is scheduled there again.",
    "plan": "Show the plan of a pod set, or preview one.",
    "planner": "Plan pod sets for other schedulers, over gRPC.",
    "plugins": "Show which plugins run at each extension point.",
    "risk": "Show how likely nodes are to be overloaded.",
    "run": "Schedule the pods of a real cluster.",
    "static": "Bind pods to the nodes that are labeled for them.",
    "trigger": "Release or hold the pods of a set.",
    "unpin": "Remove the pins of a pod from all nodes.",
    "verify": "Check that pods run where their plans placed them.",
}


class _LazyGroup(click.Group):
    """A group that imports `longshore.cli.NAME` only when command NAME runs, so that `--help` is quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in _COMMANDS:
            return None
        command = importlib.import_module(f"longshore.cli.{cmd_name}").command
        if not isinstance(command, click.Command):
            raise TypeError(f"longshore.cli.{cmd_name}.command is not a command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="longshore")
def _longshore() -> None:
    """A programmable Kubernetes scheduler.

    Example: longshore demo
    """


def main() -> None:
    """Run the command line. An error is one line on stderr; invalid arguments exit with 2."""
    try:
        code = _longshore.main(prog_name="longshore", standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
    except UserError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(1)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        sys.exit(2)
    except click.ClickException as error:
        path = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "longshore"
        click.echo(f"error: {error.format_message().rstrip('.')}; see {path} --help", err=True)
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(130)
    except BrokenPipeError:
        # The reader of the output has gone (`longshore … | head`): write nothing more, not even at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
