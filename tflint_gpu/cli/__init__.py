"""The command line: one module a command, imported only when that command runs."""

from __future__ import annotations

import errno
import gc
import importlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from tflint_gpu import __version__
from tflint_gpu.errors import UserError

#: Errors of writing to a file that was open already: the disk or the quota is used up, or the device failed.
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})

#: Errors of a path that the system does not take, or does not give to us, whatever is done with it.
_CLOSED = frozenset({errno.ENAMETOOLONG, errno.ELOOP, errno.EACCES, errno.EPERM, errno.EROFS})

#: Commands in the order that help lists them, and the module of each; it holds a `click.Command` named `command`.
COMMANDS = {
    "check": "check",
    "trace": "trace",
    "import": "import_",
    "attach": "attach",
    "doctor": "doctor",
    "rules": "rules",
    "explain": "explain",
    "clean": "clean",
}


class _LazyGroup(click.Group):
    """A group that imports a command's module when the command is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"tflint_gpu.cli.{COMMANDS[cmd_name]}")
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from tflint_gpu.config_keys import nearest

            hint = nearest(args[0], tuple(COMMANDS))
            ctx.fail(f"no such command {args[0]!r}{hint or '; the commands are ' + ', '.join(COMMANDS)}")
        return super().resolve_command(ctx, args)


@click.group(
    cls=_LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit status: 0 nothing at or above --fail-on, 1 findings, 2 the call, the settings or the run failed.",
)
@click.version_option(__version__, "-V", "--version", message="%(prog)s %(version)s")
def cli() -> None:
    """Why is my GPU idle? Lints Keras and TensorFlow training code and checks its suspicions by a short run."""


def invoke(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit status; every failure ends as one sentence on stderr."""
    try:
        status = cli.main(list(arguments), prog_name="tflint-gpu", standalone_mode=False)
        sys.stdout.flush()
        return status if isinstance(status, int) else 0
    except click.ClickException as problem:
        problem.show()
        return 2
    except UserError as problem:
        click.echo(f"tflint-gpu: {problem}", err=True)
        return 2
    except (click.Abort, KeyboardInterrupt):
        click.echo("tflint-gpu: interrupted", err=True)
        return 130
    except BrokenPipeError:
        # The reader of our output went away; what is still buffered must not complain at exit.
        _write_no_more()
        return 1
    except Exception as problem:
        from tflint_gpu.lint.groups import DEBUG

        if isinstance(problem, OSError) and problem.errno in _FULL and problem.filename is None:
            _write_no_more()
            click.echo(f"tflint-gpu: standard output cannot be written: {problem.strerror}", err=True)
            return 2
        if os.environ.get(DEBUG):
            raise
        if isinstance(problem, OSError) and problem.errno in _CLOSED and problem.filename is not None:
            place = os.fsdecode(problem.filename)
            click.echo(f"tflint-gpu: {place}: cannot be used: {problem.strerror}; name another path", err=True)
            return 2
        click.echo(
            f"tflint-gpu: a fault of its own ({type(problem).__name__}: {problem}); "
            f"set {DEBUG}=1 to see where, and please report it",
            err=True,
        )
        return 2


def _write_no_more() -> None:
    """Let what is still buffered for standard output go nowhere, or Python complains of it at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _open_closed_streams() -> None:
    """Let streams that the caller closed (``>&-``) read and write nothing; other files could take their places."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            # A file opened now takes the lowest number that is free, which is that of the stream; it stays open.
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115


def main() -> None:
    """Run the process's command line and end with its exit status.

    The cycle collector rests: what a check makes lives until it is done, and looking all of it through again and
    again took 40 % of the time (measured on a tree of 263,000 lines). Nor does it look at any of that at the end.
    """
    gc.disable()
    _open_closed_streams()
    status = invoke(sys.argv[1:])
    gc.freeze()
    sys.exit(status)
