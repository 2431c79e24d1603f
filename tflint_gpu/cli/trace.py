"""``tflint-gpu trace``: the main job. Runs a script for a few dozen steps and lints it in the light of them."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from tflint_gpu.cli.options import FilePath, finite, output_options, outputs_from, settings_from, settings_options
from tflint_gpu.cli.run import LintResult, in_light_of, lint, report
from tflint_gpu.config_keys import ALL, known_rules
from tflint_gpu.errors import UserError
from tflint_gpu.source.discovery import absolute_path, source_file

if TYPE_CHECKING:
    from tflint_gpu.config import Settings
    from tflint_gpu.trace.script import Script

#: Where evidence goes by default; the folder is safe to delete and hides itself from git.
EVIDENCE = Path(".tflint-gpu") / "evidence.json"

#: What stands for ``--verify-fix`` without a rule while the command line is read.
_BARE = "--verify-fix=\0"


class _BareVerify(click.Command):
    """Reads ``--verify-fix`` without a value, which click would take from the script's name behind it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Give the bare option a value of its own, and the script's own arguments back as they were."""
        rest = super().parse_args(ctx, [_BARE if arg == "--verify-fix" else arg for arg in args])
        ctx.params["target"] = tuple("--verify-fix" if arg == _BARE else arg for arg in ctx.params["target"])
        return rest


@click.command(
    name="trace",
    cls=_BareVerify,
    short_help="Run a script for a few steps and lint it in their light.",
    context_settings={"allow_interspersed_args": False},
)
@click.option("-m", "module", is_flag=True, help="SCRIPT is the name of a module, as after `python -m`.")
@click.option(
    "--python", default=sys.executable, help="The interpreter that has your TensorFlow.  [default: this one]"
)
@click.option("--steps", default=20, type=click.IntRange(1, 1000), help="Steps to profile.  [default: 20]")
@click.option(
    "--warmup", default=10, type=click.IntRange(1, 100000), help="Steps to let pass first.  [default: 10]"
)
@click.option(
    "--deadline",
    default=120.0,
    type=click.FloatRange(min=1.0),
    callback=finite,
    metavar="SECONDS",
    help="End each run after this long, whatever it does.  [default: 120]",
)
@click.option(
    "--what-if",
    type=click.Choice(["none", "auto", "all"]),
    default="auto",
    help="Measure changes: none, a cached batch and what findings ask for, or all.  [default: auto]",
)
@click.option(
    "--budget",
    default=90.0,
    type=click.FloatRange(min=0.0),
    callback=finite,
    metavar="SECONDS",
    help="Time for all what-if runs together.  [default: 90]",
)
@click.option(
    "--evidence-out", metavar="FILE", type=FilePath(), help=f"Where evidence goes.  [default: {EVIDENCE}]"
)
@click.option(
    "--verify-fix",
    multiple=True,
    metavar="[=RULE]",
    help="Run the program with its fixes too, on a copy, and measure what they give back.  [default: all rules]",
)
@click.option("--show-output", is_flag=True, help="Show what the script prints, on standard error.")
@settings_options
@output_options
@click.argument("target", nargs=-1, type=click.UNPROCESSED, metavar="SCRIPT [ARGS]...")
def command(target: tuple[str, ...], module: bool, **flags: Any) -> int:
    """Run SCRIPT with ARGS for a few dozen steps, measure what they wait for, and lint it with the evidence.

    SCRIPT is a Python file or a notebook. Nothing that it would save is written, and it is stopped once
    enough steps were seen.
    """
    from tflint_gpu.trace.evidence import save
    from tflint_gpu.trace.kept import profile_beside, refuse_strangers
    from tflint_gpu.trace.launcher import terminable
    from tflint_gpu.trace.script import find_module, find_script
    from tflint_gpu.trace.session import TraceJob, trace_script

    if not target or not target[0]:
        raise click.UsageError("name the script to trace, or -m and a module")
    script = find_module(target[0]) if module else find_script(target[0])
    settings = settings_from(flags, [str(script.path)])
    asked = tuple(ALL if word == "\0" else word for word in flags["verify_fix"])
    known_rules(asked, "--verify-fix")
    where = Path(flags["evidence_out"] or EVIDENCE)
    refuse_strangers(where)
    job = TraceJob(
        script,
        target[1:],
        python=flags["python"],
        warmup=flags["warmup"],
        window=flags["steps"],
        deadline=flags["deadline"],
        changes=_changes(flags["what_if"], script, settings),
        budget=flags["budget"],
        show_output=flags["show_output"],
        profile_folder=profile_beside(where),
    )
    with terminable():
        hide(where.parent)
        evidence = trace_script(job, _tell, live=Live(sys.stderr))
        save(evidence, where)
        settings = in_light_of(settings, evidence)
        result = _lint([str(script.path), *evidence.sources], settings)
        if asked:
            from tflint_gpu.cli.verify import with_verified_fixes

            evidence = with_verified_fixes(job, result, evidence, settings, asked, _tell)
            save(evidence, where)
    _tell(f"evidence is in {where}")
    return report(result, evidence, settings, outputs_from(flags))


class Live:
    """A line on a terminal that is written over again and again; elsewhere each experiment is told once."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.told: set[str] = set()

    def __call__(self, text: str) -> None:
        """Show what is going on now."""
        if self.stream.isatty():
            width = shutil.get_terminal_size().columns
            self.stream.write(f"\r\x1b[K{f'trace: {text}'[: width - 1]}")
        elif (what := text.partition(" (")[0]) not in self.told:
            self.told.add(what)
            self.stream.write(f"trace: {text}\n")
        self.stream.flush()


def _tell(text: str) -> None:
    # A live line may stand there.
    wipe = "\r\x1b[K" if sys.stderr.isatty() else ""
    click.echo(f"{wipe}trace: {text}", err=True)


def _lint(paths: list[str], settings: Settings) -> LintResult:
    files = {absolute_path(path): source_file(absolute_path(path), explicit=True) for path in paths}
    return lint([files[path] for path in sorted(files)], settings)


def _changes(what_if: str, script: Script, settings: Settings) -> tuple[str, ...] | None:
    """Return the what-if runs to make; None is all that apply."""
    if what_if == "all":
        return None
    if what_if == "none":
        return ()
    result = _lint([str(script.path)], settings)
    checks = {check.page.name: check for check in result.checks}
    known = [finding for finding in result.findings if finding.name in checks]
    asked = [change for finding in known for change in checks[finding.name].asks(finding)]
    return tuple(dict.fromkeys(("cached-batch", *asked)))


def hide(folder: Path) -> None:
    """Make the default folder with a file that keeps it out of the user's repository."""
    if folder.name != EVIDENCE.parent.name or folder.exists():
        return
    try:
        folder.mkdir(parents=True)
        (folder / ".gitignore").write_text("*\n", encoding="utf-8")
    except OSError as problem:
        raise UserError(
            f"{folder}: cannot keep the evidence here: {problem.strerror}; name another place with --evidence-out"
        ) from None
