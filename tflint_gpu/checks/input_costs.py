"""How a trace judges input: what all of it costs the step, and which part of that a finding's line causes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from statistics import mean, median
from typing import TYPE_CHECKING

from tflint_gpu.checks.check import Judgement
from tflint_gpu.checks.verdicts import (
    by_experiment,
    by_repair,
    share_of_mean_step,
    share_of_step,
    weigh,
)
from tflint_gpu.findings import Finding, Measure, Severity, Verdict
from tflint_gpu.trace.evidence import touches

if TYPE_CHECKING:
    from tflint_gpu.trace.evidence import Evidence, PipelineStage, PythonInput

#: Input that takes less than this of a step keeps ahead of any GPU.
NEGLIGIBLE_MS = 0.5

#: Why a repair that gained nothing on a CPU may gain something beside a GPU; threads of Python may not there.
SHARED = "the change gained nothing on this CPU, whose cores the step needs too"
HIDDEN = "the change gained nothing on this CPU: its step hides what the shorter step of a GPU may not"
LOCKED = f"{SHARED}; Python in several threads takes turns at one lock, beside a GPU as well"

#: Names that the runtime gives to what the code calls a map, once it has rewritten the pipeline.
SERIAL_MAPS = ("Map", "MapDataset")
PARALLEL_MAPS = ("ParallelMapV2", "ParallelMap")
FUSED_MAPS = ("MapAndBatch", "NumaMapAndBatch", "MapAndBatchV2")
ALL_MAPS = (*SERIAL_MAPS, *PARALLEL_MAPS, *FUSED_MAPS)

#: Stages that make elements in the background, and so run ahead of the step where they stand last.
AHEAD = ("Prefetch", *PARALLEL_MAPS, *FUSED_MAPS, "ParallelInterleaveV4", "ParallelInterleaveV3", "ParallelBatch")


def restarted(evidence: Evidence) -> bool:
    """Say whether the trace began the input anew for each step that it measured: its cost says nothing then."""
    return evidence.facts.get("input_restarted") is True


def judge_input(evidence: Evidence, part: float, *measures: Measure) -> Judgement | None:
    """Judge a cause that makes `part` (0..1) of the input's cost; None where the trace measured no input.

    Of `measures`, the first in milliseconds is the cause's own time per step. The run with one cached batch
    decides where it was made: input that gains nothing when it is free costs nothing, and a gain beyond what was
    seen of the input comes from elsewhere: one batch has one shape, which needs no new trace. Without that run the
    wait for input counts, of which no cause takes more than its own time; where the run was noisy, at most what
    its noise leaves.
    """
    if restarted(evidence):
        reason = "the script's one call was repeated, and each repetition began its input anew"
        return Judgement(Verdict.UNMEASURED, measures, reason=reason)
    spent = next((measure.value for measure in measures if measure.unit == "ms"), None)
    cached = evidence.experiment("cached-batch")
    whole = by_experiment(cached)
    waiting = evidence.share("input_wait")
    if whole is not None and whole.verdict is Verdict.REFUTED:
        judged = Judgement(Verdict.REFUTED, (*whole.measures, *measures))
    elif whole is not None and cached is not None:
        figures = (Measure("speedup", round(cached.speedup, 3)), *measures)
        share = max(0.0, min(cached.saved_share - compiled_again(evidence), input_bound(evidence))) * part
        judged = weigh(share, "input_share", cached.basis, *figures)
    elif waiting is not None:
        own = share_of_step(spent, evidence)
        share = waiting * part if own is None else min(waiting * part, own)
        share = share if cached is None else min(share, cached.most_saved * part)
        judged = weigh(share, "input_wait_share", "trace: wait for input", *measures)
    else:
        return None
    return without_gpu(judged, evidence, spent or 0.0)


def input_bound(evidence: Evidence) -> float:
    """Return the largest share of the step that input can cost: the wait for it, or what its threads work.

    Work counts where cores are shared: a CPU's step is slowed down by the threads that make its batches.
    """
    stages = sum(stage.self_ms for stage in evidence.pipelines)
    python = sum(source.ms_per_step for source in evidence.python_input)
    works = share_of_step(max(stages, python), evidence) or 0.0
    if not evidence.pipelines and not evidence.python_input:
        return 1.0
    return max(works, evidence.share("input_wait") or 0.0, evidence.share("host_to_device") or 0.0)


def judge_repair(
    change: str,
    evidence: Evidence,
    *measures: Measure,
    severity: Severity | None = None,
    unsettled: str = SHARED,
) -> Judgement | None:
    """Judge a cause of slow input by the run with its own repair (see `by_repair`); None where it was not tried.

    On a CPU step and input share the cores: threads that gain nothing there may gain all of it beside a GPU, and
    `unsettled` says so.
    """
    judged = by_repair(evidence.experiment(change), severity)
    if judged is None:
        return None
    measures = (*judged.measures, *measures)
    if judged.verdict in (Verdict.CONFIRMED, Verdict.MINOR) or evidence.environment.device.kind == "gpu":
        return replace(judged, measures=measures)
    return Judgement(Verdict.UNMEASURED, measures, reason=unsettled)


def exposed_input(evidence: Evidence) -> tuple[float, float]:
    """Return the shares of the median step that go into waiting for a batch, and into copying it to the device.

    The median, not the mean: one step that refills a buffer between epochs is another rule's matter.
    """
    steps = [step for step in evidence.steps if step.step_ms]
    if not steps:
        return 0.0, 0.0
    waiting = median(step.buckets.get("input_wait", 0.0) / step.step_ms for step in steps)
    return waiting, median(step.buckets.get("host_to_device", 0.0) / step.step_ms for step in steps)


def negligible(evidence: Evidence) -> bool:
    """Say whether a CPU's steps wait so shortly for input that only their own shortness makes it a large share."""
    waits = [step.buckets.get("input_wait", 0.0) for step in evidence.steps]
    return evidence.environment.device.kind != "gpu" and bool(waits) and median(waits) < NEGLIGIBLE_MS


def compiled_again(evidence: Evidence) -> float:
    """Return the share of the mean step (0..1) that new traces and XLA compilations take after warm-up.

    One cached batch has one shape and spares them all, so that much of its gain is not the input's.
    """
    retracing = share_of_mean_step(sum(traced.retrace_ms or 0.0 for traced in evidence.functions), evidence)
    return max(evidence.share("compile") or 0.0, retracing or 0.0)


def keeps_ahead(evidence: Evidence) -> bool:
    """Say whether a CPU's input runs ahead of the step and works less than the rest of the step leaves it time.

    Such input is ready before it is asked for: what the step still waits is for cores that both share, or for
    threads that the machine's other work holds up. A GPU's step leaves its host's cores to the input.
    """
    step = median([step.step_ms for step in evidence.steps]) if evidence.steps else 0.0
    if evidence.environment.device.kind == "gpu" or not evidence.pipelines or not step:
        return False
    waits = median(step.buckets.get("input_wait", 0.0) for step in evidence.steps)
    ahead = all(_ops(chain)[:1] and _ops(chain)[0] in AHEAD for chain in _wholes(evidence).values())
    return ahead and _work(evidence) < step - waits


def begins_anew(evidence: Evidence) -> bool:
    """Say whether steps wait because every epoch of one or two of them makes a new iterator.

    The input itself works for less than two thirds of the wait; pauses between epochs are a matter of their own.
    """
    steps = evidence.facts.get("epoch_steps")
    if not isinstance(steps, int | float) or not 0 < steps <= 2 or not evidence.pipelines or not evidence.steps:
        return False
    return _work(evidence) < mean([step.buckets.get("input_wait", 0.0) for step in evidence.steps]) * 2 / 3


def _work(evidence: Evidence) -> float:
    """Return the milliseconds that the input itself works per step, in TensorFlow or in Python."""
    python = sum(source.ms_per_step for source in evidence.python_input)
    return max(sum(stage.self_ms for stage in evidence.pipelines), python)


def without_gpu(judged: Judgement, evidence: Evidence, spent_ms: float) -> Judgement:
    """Return `judged`, but unmeasured where a CPU's long step may be all that hides `spent_ms` of input.

    What a CPU waits for, a GPU with its shorter step waits for all the more; its not waiting says nothing.
    """
    on_gpu = evidence.environment.device.kind == "gpu"
    if on_gpu or judged.verdict not in (Verdict.MINOR, Verdict.REFUTED) or spent_ms < NEGLIGIBLE_MS:
        return judged
    reason = "on this CPU the step hides it, which the shorter step of a GPU may not"
    return Judgement(Verdict.UNMEASURED, judged.measures, reason=reason)


def stages_of(finding: Finding, evidence: Evidence, ops: Iterable[str]) -> list[PipelineStage]:
    """Return the stages of the rewritten pipelines that `finding` speaks of.

    They are known by their line, or by that of the stage around a call that `finding` stands at; where the trace
    could not map a stage back, the only stage in `ops` is taken.
    """
    wanted = tuple(ops)
    places = (finding.location, *(related.location for related in finding.related))
    here = [stage for stage in evidence.pipelines if any(touches(stage.spot, place) for place in places)]
    if here:
        return [stage for stage in here if stage.op in wanted]
    lost = [stage for stage in evidence.pipelines if stage.op in wanted and stage.spot is None]
    return lost if len(lost) == 1 else []


def part_of(stages: Iterable[PipelineStage], evidence: Evidence) -> float | None:
    """Return the share of their pipelines' own time that `stages` take; None where nothing was timed."""
    chosen = list(stages)
    pipelines = {stage.pipeline for stage in chosen}
    total = sum(stage.self_ms for stage in evidence.pipelines if stage.pipeline in pipelines)
    return sum(stage.self_ms for stage in chosen) / total if total else None


def judge_map(finding: Finding, evidence: Evidence) -> Judgement | None:
    """Judge by the part of the input's cost that the maps at place ``detail["stage"]`` take: an upper bound.

    For findings about a call inside a map's function, which the runtime does not time on its own.
    """
    place = finding.detail.get("stage")
    if place is None:
        return None
    stages = stages_of(replace(finding, location=place), evidence, ALL_MAPS)
    part = part_of(stages, evidence)
    spent = Measure("map_time", round(sum(stage.self_ms for stage in stages), 3), "ms")
    return None if not stages or part is None else judge_input(evidence, part, spent)


def rewritten(evidence: Evidence, finding: Finding) -> tuple[str, ...]:
    """Return the pipeline of `finding` as the runtime rewrote it, from the step inwards; empty where not known.

    The root that every chain starts from is left off: ``("Prefetch", "BatchV2", "Map", "TensorSlice")``.
    """
    wholes = _wholes(evidence)
    mine = next((stage.pipeline for stage in evidence.pipelines if touches(stage.spot, finding.location)), None)
    if mine is None and len(wholes) == 1:
        mine = next(iter(wholes))
    if mine is None:
        return ()
    return _ops(wholes[mine])


def _wholes(evidence: Evidence) -> dict[int, str]:
    """Return the longest chain of each pipeline, by the pipeline's number."""
    wholes: dict[int, str] = {}
    for stage in evidence.pipelines:
        if len(stage.chain) > len(wholes.get(stage.pipeline, "")):
            wholes[stage.pipeline] = stage.chain
    return wholes


def _ops(chain: str) -> tuple[str, ...]:
    """Return the stages of `chain` from the step inwards, without the root that every chain starts from."""
    parts = (part.partition("[")[0] for part in chain.split("::"))
    return tuple(part for part in parts if part not in ("Iterator", "Root", "Model"))


def python_input(finding: Finding, evidence: Evidence, *kinds: str) -> list[PythonInput]:
    """Return the Python input of `kinds` that `finding` speaks of: by its places, else the only one there is."""
    places = (
        finding.location,
        *(related.location for related in finding.related),
        *finding.detail.get("places", ()),
    )
    made = [source for source in evidence.python_input if source.kind in kinds]
    here = [source for source in made if any(touches(source.spot, place) for place in places)]
    if here:
        return here
    named = [source for source in made if source.name and source.name in finding.detail.get("names", ())]
    return named or (made if len(made) == 1 and made[0].spot is None else [])


def judge_python(finding: Finding, evidence: Evidence, *kinds: str) -> Judgement | None:
    """Judge Python that makes input: by the time its calls take of the step, and by what input costs as a whole.

    Python that runs while the step computes costs nothing, however long it takes: the wait for input is the bound.
    """
    sources = python_input(finding, evidence, *kinds)
    if not sources or not evidence.step_ms:
        return None
    spent = sum(source.ms_per_step for source in sources)
    whole = sum(source.ms_per_step for source in evidence.python_input)
    part = spent / whole if whole else 1.0
    return judge_input(evidence, part, Measure("python_time", round(spent, 3), "ms"))
