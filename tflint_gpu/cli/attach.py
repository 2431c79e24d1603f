"""``tflint-gpu attach``: evidence from workers that are training right now."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from tflint_gpu.cli.import_ import show
from tflint_gpu.cli.options import FilePath, finite, output_options, settings_from, settings_options
from tflint_gpu.cli.trace import EVIDENCE, hide
from tflint_gpu.trace.attach import AttachJob, attach, parse_workers
from tflint_gpu.trace.kept import kept, profile_beside, refuse_strangers


@click.command(name="attach", short_help="Record workers that are training now, and say what they wait for.")
@click.option("--python", default=sys.executable, help="An interpreter that has TensorFlow.  [default: this one]")
@click.option(
    "--duration",
    default=2.0,
    type=click.FloatRange(0.1, 60.0),
    callback=finite,
    metavar="SECONDS",
    help="How long to record; some ten steps are enough.  [default: 2]",
)
@click.option(
    "--timeout",
    default=30.0,
    type=click.FloatRange(1.0, 600.0),
    callback=finite,
    metavar="SECONDS",
    help="How long to wait for the profiles after that.  [default: 30]",
)
@click.option(
    "--logdir",
    metavar="FOLDER",
    type=FilePath(path_type=Path),
    help="A folder that the workers and this machine share; they write their profiles there.  "
    "[default: beside the evidence]",
)
@click.option(
    "-o",
    "--evidence-out",
    metavar="FILE",
    type=FilePath(path_type=Path),
    default=EVIDENCE,
    help=f"Where evidence goes.  [default: {EVIDENCE}]",
)
@settings_options
@output_options
@click.argument("workers", nargs=-1, required=True, metavar="HOST:PORT,…")
def command(workers: tuple[str, ...], evidence_out: Path, logdir: Path | None, **flags: Any) -> int:
    """Record all WORKERS at once through TensorFlow's profiler service, and say what their steps wait for.

    Each worker needs `tf.profiler.experimental.server.start(PORT)` before it trains; those of a
    MultiWorkerMirroredStrategy have the service on the port that TF_CONFIG names. The training goes on, slower
    while it is recorded. The service is TensorFlow's and runs inside the worker: have a checkpoint. Merge the
    evidence into a lint of the code with `tflint-gpu check PATHS --evidence FILE`.
    """
    named = parse_workers(workers)
    settings = settings_from(flags, [])
    refuse_strangers(evidence_out)
    hide(evidence_out.parent)
    with kept(profile_beside(evidence_out).absolute()) as draft:
        folder = logdir.absolute() if logdir else draft
        job = AttachJob(named, folder, flags["python"], flags["duration"], flags["timeout"])
        click.echo(f"attach: recording {', '.join(named)} for {job.duration:g} s", err=True)
        imported = attach(job)
    return show(imported, evidence_out, "attach", settings, flags)
