"""Turns the iterator events of tf.data into stages with the work of their own."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from tflint_gpu.trace.evidence import PipelineStage
from tflint_gpu.trace.profile.host import HostTrace

#: Stages whose consumer waits for threads that work ahead: the length of their own event is waiting, not work.
_AHEAD = re.compile(
    r"^(Prefetch|ParallelMap|MapAndBatch|ParallelInterleave|ParallelBatch|ParallelFilter|MultiDevice)"
)
_NESTED = re.compile(r"\[\d+\]")


@dataclass
class _Stage:
    self_ps: int = 0
    whole_ps: int = 0
    count: int = 0


def pipeline_stages(hosts: Iterable[HostTrace], steps: int) -> tuple[PipelineStage, ...]:
    """Return the stages of all tf.data pipelines, outermost first, with the time per step of the window.

    Pipeline 0 is the one whose outermost stage takes the most time: the training input, where a step waits for it.
    """
    found = [tree for host in hosts for tree in _pipelines(host)]
    found.sort(key=lambda tree: len(min(tree[1], key=len)))
    merged: dict[str, tuple[int, dict[str, _Stage]]] = {}
    for time, stages in found:
        key = _same_pipeline(stages, merged)
        total, known = merged.setdefault(key, (0, defaultdict(_Stage)))
        for chain, stage in stages.items():
            known[chain].self_ps += stage.self_ps
            known[chain].count += stage.count
        merged[key] = (total + time, known)
    ordered = sorted(merged.values(), key=lambda pipeline: -pipeline[0])
    return tuple(
        PipelineStage(
            chain, chain.rpartition("::")[2], stage.self_ps / 1e9 / max(steps, 1), stage.count, pipeline=index
        )
        for index, (_, stages) in enumerate(ordered)
        for chain, stage in sorted(stages.items(), key=lambda item: item[0].count("::"))
    )


def _same_pipeline(stages: dict[str, _Stage], known: dict[str, tuple[int, dict[str, _Stage]]]) -> str:
    """Return the key of the pipeline that `stages` are of: the longest chain.

    A new epoch has new iterators over the same chain. A tree without its root had no event of its outer stages in
    the window, and joins the pipeline that has its outermost stage.
    """
    outermost = min(stages, key=len)
    if outermost.count("::") > 1:
        for key, (_, others) in known.items():
            if outermost in others:
                return key
    return max(stages, key=len)


def _pipelines(host: HostTrace) -> list[tuple[int, dict[str, _Stage]]]:
    """Return (time of the outermost stage, stages) for each iterator tree of `host`."""
    parents = {event.id: event.parent for event in host.stages if event.id is not None}
    trees: dict[int | None, dict[str, _Stage]] = defaultdict(lambda: defaultdict(_Stage))
    for event in host.stages:
        stage = trees[_root(event.id, parents)][_one_input(event.chain)]
        stage.count += 1
        stage.whole_ps += event.end - event.start
        if not _AHEAD.match(event.chain.rpartition("::")[2]):
            stage.self_ps += event.self_ps
    for run, (owner, chain) in host.captured.items():
        if chain:
            trees[_root(owner, parents)][_one_input(chain)].self_ps += host.executor_ps.get(run, 0)
    return [(stages[min(stages, key=len)].whole_ps, dict(stages)) for stages in trees.values()]


def _one_input(chain: str) -> str:
    """Name all inputs of an interleave alike: ``ParallelInterleaveV4[37]::Map`` ends in ``[0]::Map``."""
    return _NESTED.sub("[0]", chain)


def _root(stage: int | None, parents: dict[int | None, int | None] | dict[int, int | None]) -> int | None:
    """Follow `parents` from `stage` to the outermost known one; bounded, as ids in a damaged file may loop."""
    for _ in range(100):
        parent = parents.get(stage)  # type: ignore[arg-type]
        if parent is None:
            return stage
        stage = parent
    return stage
