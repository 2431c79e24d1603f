"""``tflint-gpu doctor``: does TensorFlow see the GPU, and if not, why."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from tflint_gpu.trace.machine import Facts


@click.command(name="doctor", short_help="Does TensorFlow see the GPU, and if not, why?")
@click.option(
    "--python", default=sys.executable, help="The interpreter that has your TensorFlow.  [default: this one]"
)
def command(python: str) -> int:
    """Ask an interpreter whether its TensorFlow sees a GPU, and say what to mend where it does not.

    Exit status: 0 it sees one, 1 it does not, 2 it could not be asked.
    """
    from tabulate import tabulate

    from tflint_gpu.trace.machine import examine, judge

    facts = examine(python)
    click.echo(tabulate(table(facts), tablefmt="plain", disable_numparse=True))
    verdict = judge(facts)
    click.echo(f"\n{verdict.sentence}")
    return verdict.status


def table(facts: Facts) -> list[tuple[str, str]]:
    """Return what was found, as (what, answer) rows in the order in which the parts stand on each other."""
    from tflint_gpu.program.kernels import release_of, table_version

    cards = ", ".join(f"{name} ({capability})" if capability else name for name, capability in facts.cards)
    build = facts.build
    built = "CUDA " + build.get("cuda_version", "?") + ", cuDNN " + build.get("cudnn_version", "?")
    rows = [
        ("system", facts.system),
        ("driver", facts.driver or facts.no_driver),
        ("cards", cards or "none"),
        ("CUDA_VISIBLE_DEVICES", "not set" if facts.visible is None else repr(facts.visible)),
        ("interpreter", f"{facts.python} ({facts.interpreter})"),
        ("TensorFlow", facts.tensorflow or f"none: {facts.problem}"),
        ("packages", _packages(facts)),
        ("built for", "ROCm" if facts.rocm_build else built if facts.cuda_build else "CPU only"),
        ("compute capabilities", ", ".join(re.findall(r"\w+_\d+a?", build.get("cuda_compute_capabilities", "")))),
        ("missing libraries", ", ".join(facts.missing) or "none named"),
        ("table of kernels", table_version(release_of(facts.tensorflow))),
        ("GPUs TensorFlow sees", ", ".join(facts.gpus) or "none"),
    ]
    return rows[: 6 if facts.tensorflow is None else None]


def _packages(facts: Facts) -> str:
    own = [
        f"{name} {version}" for name, version in sorted(facts.packages.items()) if not name.startswith("nvidia-")
    ]
    libraries = sum(name.startswith("nvidia-") for name in facts.packages)
    return ", ".join(own) + (f", {libraries} nvidia-* libraries" if libraries else "")
