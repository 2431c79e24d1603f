"""``tflint-gpu import``: evidence from profiles that were recorded elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tflint_gpu.cli.options import FilePath, output_options, outputs_from, settings_from, settings_options
from tflint_gpu.cli.run import LintResult, Output, report

if TYPE_CHECKING:
    from tflint_gpu.config import Settings
    from tflint_gpu.trace.importer import Imported


@click.command(name="import", short_help="Read a recorded profile: a TensorBoard logdir or an .xplane.pb file.")
@click.option("-o", "--evidence-out", metavar="FILE", type=FilePath(), help="Write the evidence to this file too.")
@settings_options
@output_options
@click.argument("logdir", type=FilePath(path_type=Path))
def command(logdir: Path, evidence_out: str | None, **flags: Any) -> int:
    """Read the newest profile in LOGDIR and say what its steps wait for.

    LOGDIR is a TensorBoard log folder, the folder of one run, or a file: .xplane.pb, a profiler table (.pb) or
    a chrome timeline. Merge the evidence into a lint of the code with `tflint-gpu check PATHS --evidence FILE`.
    """
    from tflint_gpu.trace.importer import import_profile

    settings = settings_from(flags, [])
    where = Path(evidence_out) if evidence_out else None
    return show(import_profile(logdir), where, "import", settings, flags)


def show(
    imported: Imported, evidence_out: Path | None, name: str, settings: Settings, flags: Mapping[str, Any]
) -> int:
    """Write the evidence of a profile, where a file is given, and report it; `name` is that of the command."""
    from tflint_gpu.trace.evidence import save
    from tflint_gpu.trace.importer import describe

    if evidence_out is not None:
        save(imported.evidence, evidence_out)
        click.echo(f"{name}: evidence is in {evidence_out}", err=True)
    outputs = outputs_from({**flags, "output_format": flags["output_format"] or "full"})
    status = report(LintResult(()), imported.evidence, settings, outputs)
    if outputs[0] == Output("full", None, flags["color"]) and (text := describe(imported)):
        click.echo(f"\n{text}")
    return status
