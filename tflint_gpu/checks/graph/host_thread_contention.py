"""TFG653: the threads of tf.data keep the thread that launches kernels off the CPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tflint_gpu.checks.check import Check
from tflint_gpu.checks.verdicts import place_of, without_overhead
from tflint_gpu.findings import Finding, Impact, Measure, Verdict

if TYPE_CHECKING:
    from tflint_gpu.trace.evidence import Evidence

#: Launching takes this much of the step, and the cores are this busy.
LAUNCHES = 0.15
BUSY = 0.80

#: On fewer cores there is nothing to share out: more of them are needed.
FEW_CORES = 4

#: tf.data computes for less than this share of the step (over all threads): its threads are in nobody's way.
IDLE_INPUT = 0.5


class HostThreadContention(Check):
    """Kernels are launched late while tf.data keeps every core busy."""

    def observe(self, evidence: Evidence) -> Iterator[Finding]:
        """Yield one finding at the training loop where launches and tf.data contend for the cores."""
        launch = contended(evidence)
        if launch is None or evidence.samples is None or evidence.samples.cpu_util is None:
            return
        found = self.at(
            place_of(evidence),
            f"{launch:.0%} of the step the GPU waits for launches while tf.data keeps the cores busy: set "
            "TF_GPU_THREAD_MODE=gpu_private before the start, or options.threading.private_threadpool_size.",
        )
        yield found.with_verdict(
            Verdict.OBSERVED,
            evidence=(
                Measure("launch_share", round(launch, 4)),
                Measure("cpu_utilization", round(evidence.samples.cpu_util, 4)),
            ),
            impact=Impact(round(launch, 4), "trace: launches while the cores are busy"),
        )


def contended(evidence: Evidence) -> float | None:
    """Return the share of the step that launching takes where tf.data's threads may be why; None elsewhere."""
    samples, cpus = evidence.samples, evidence.environment.cpus
    if evidence.gpu_busy_share is None or not evidence.saw_steps or samples is None or cpus is None:
        return None
    launch = without_overhead(evidence.share("launch") or 0.0, evidence)
    if launch < LAUNCHES or (samples.cpu_util or 0.0) < BUSY or cpus < FEW_CORES:
        return None
    input_ms = sum(stage.self_ms for stage in evidence.pipelines)
    return launch if input_ms >= IDLE_INPUT * (evidence.step_ms or 0.0) and input_ms else None
