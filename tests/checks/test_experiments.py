"""Every rule that asks for a what-if run lets it decide, and no rule asks for a run that nobody can make."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.checks.conftest import evidence_of, finding_at
from tflint_gpu.checks import load_check
from tflint_gpu.checks.catalogue import all_pages
from tflint_gpu.checks.check import Check, Judgement
from tflint_gpu.findings import Finding, Location, Verdict
from tflint_gpu.trace.evidence import (
    CallbackCost,
    Device,
    Eager,
    Environment,
    PipelineStage,
    PythonInput,
    Spot,
    WhatIf,
    Window,
)
from tflint_gpu.trace.whatif import CHANGES

LINE = 3


def gain(change: str) -> WhatIf:
    return WhatIf(change, 5.0, 10.0, 2.0, 3, 0.05, 1.9, 2.1)


def none(change: str) -> WhatIf:
    return WhatIf(change, 10.0, 10.0, 1.0, 3, 0.01, 0.99, 1.01)


def stage(op: str) -> PipelineStage:
    return PipelineStage(f"Iterator::Root::{op}", op, 6.0, 20, Spot("train.py", LINE))


def test_what_rules_ask_for_can_be_tried(rule: Callable[[str], Check]) -> None:
    finding = finding_at(rule("missing-prefetch"), LINE)
    asked = {change for page in all_pages() for change in rule(page.name).asks(finding)}
    assert asked <= set(CHANGES)
    # The cached batch is always tried. Order of elements is nobody's fault, and no rule advises against XLA.
    assert set(CHANGES) - asked == {"cached-batch", "determinism-off", "xla-off"}


#: Rule, its what-if run, what else the trace must have seen, and details of the finding.
ASKING = [
    ("missing-prefetch", "prefetch", {"pipelines": (stage("BatchV2"),)}, {}),
    ("map-not-parallel", "parallel-map", {"pipelines": (stage("Map"),)}, {}),
    ("serial-file-read", "parallel-read", {"pipelines": (stage("Interleave"),)}, {}),
    ("missing-cache", "cache", {}, {}),
    ("pydataset-few-workers", "workers-4", {}, {}),
    ("run-eagerly-enabled", "run-eagerly-off", {}, {"kind": "step"}),
    ("mixed-precision-off", "mixed-bfloat16", {}, {}),
    ("mixed-precision-off", "mixed-float16", {}, {}),
    (
        "per-batch-callback-work",
        "callbacks-off",
        {"callbacks": (CallbackCost("Slow", 6.0, spot=Spot("train.py", LINE)),)},
        {},
    ),
]


HERE = Spot("train.py", LINE)
TWO_GPUS = Environment(device=Device("H200", "gpu", traced=True, count=2))
SHORT = Window("fit", 10, 20, 1.0, 0.05, HERE)
#: What else the other rules that ask must see: fields of the evidence, and details of the finding.
ALSO_ASKING: dict[str, tuple[dict[str, object], dict[str, object]]] = {
    "serial-file-read": ({"pipelines": (stage("Map"),)}, {"op": "map"}),
    "batch-size-ignored": ({"window": Window("fit", 10, 20, 10.0, 0.05, HERE, 32)}, {"asked": 256}),
    "replica-batch-starved": ({"environment": TWO_GPUS}, {}),
    "lightweight-model": ({"what_if": (none("cached-batch"),), "window": SHORT}, {}),
    "eager-train-step": ({"eager": Eager(100.0, 0.8, ((HERE, 100.0),))}, {}),
}
CHECKS = [load_check(page)(page, page.severity, dict(page.options)) for page in all_pages()]
ASKED = [(check.page.name, change) for check in CHECKS for change in check.asks(finding_at(check, LINE))]


@pytest.mark.parametrize(("name", "change"), ASKED)
def test_what_a_rule_asks_for_makes_a_difference_to_it(
    rule: Callable[[str], Check], name: str, change: str
) -> None:
    rows = {row[0]: row[2:] for row in ASKING if row[1] == change}
    check, (seen, detail) = rule(name), rows.get(name) or ALSO_ASKING.get(name, ({}, {}))
    others = seen.get("what_if", ())
    assert isinstance(others, tuple)

    def said(*results: WhatIf) -> tuple[Judgement | None, list[Finding]]:
        evidence = evidence_of(gpu=True, buckets={"input_wait": 6.0, "device_compute": 3.0}, **seen)
        evidence = replace(evidence, what_if=(*others, *results))
        return check.judge(finding_at(check, LINE, **detail), evidence), list(check.observe(evidence))

    assert said(replace(gain(change), spots=(HERE,))) != said()


@pytest.mark.parametrize(("name", "change", "seen", "detail"), ASKING)
def test_a_gain_confirms_and_its_absence_on_a_gpu_refutes(
    rule: Callable[[str], Check], name: str, change: str, seen: dict[str, object], detail: dict[str, object]
) -> None:
    check = rule(name)
    finding = finding_at(check, LINE, **detail)
    assert change in check.asks(finding)
    buckets = {"input_wait": 6.0, "device_compute": 4.0}

    judged = check.judge(finding, evidence_of(gpu=True, buckets=buckets, what_if=(gain(change),), **seen))
    assert judged is not None
    assert judged.verdict is Verdict.CONFIRMED
    assert judged.impact is not None
    assert judged.impact.step_share == pytest.approx(0.5)
    assert judged.impact.basis == f"what-if: {change.replace('-', ' ')}"
    named = [measure.metric for measure in judged.measures]
    assert len(named) == len(set(named)), "a figure is told twice"

    judged = check.judge(finding, evidence_of(gpu=True, buckets=buckets, what_if=(none(change),), **seen))
    assert judged is not None
    assert judged.verdict is Verdict.REFUTED
    assert judged.impact is None


@pytest.mark.parametrize(
    "name",
    ["missing-prefetch", "map-not-parallel", "serial-file-read", "missing-cache", "pydataset-few-workers"],
)
def test_no_gain_on_a_cpu_says_nothing_of_the_host_of_a_gpu(rule: Callable[[str], Check], name: str) -> None:
    row = next(row for row in ASKING if row[0] == name)
    check, seen = rule(name), {"pipelines": (stage("Map"), stage("Interleave"), stage("BatchV2"))} | row[2]
    evidence = evidence_of(buckets={"input_wait": 6.0}, what_if=(none(row[1]),), **seen)
    judged = check.judge(finding_at(check, LINE), evidence)
    assert judged is not None
    assert judged.verdict is Verdict.UNMEASURED
    assert "on this CPU" in judged.reason


@pytest.mark.parametrize(
    ("speedup", "low", "high"), [(0.84, 0.76, 0.93), (0.93, 0.81, 1.07)], ids=["loss", "noise"]
)
@pytest.mark.parametrize("gpu", [False, True], ids=["cpu", "gpu"])
@pytest.mark.parametrize(("name", "change", "seen", "detail"), ASKING)
def test_a_repair_that_gained_nothing_has_the_last_word(
    rule: Callable[[str], Check],
    name: str,
    change: str,
    seen: dict[str, object],
    detail: dict[str, object],
    gpu: bool,
    speedup: float,
    low: float,
    high: float,
) -> None:
    """Whatever else the trace shows: slow input that a free batch spares, ops that Python runs one by one."""
    check = rule(name)
    tried = WhatIf(change, 10.0 / speedup, 10.0, speedup, 3, (high - low) / 2, low, high)
    rest = {
        "python_input": (PythonInput("PyDataset", "Rows", 8.0, 20, Spot("train.py", LINE)),),
        "eager": Eager(100.0, 0.8, ((Spot("train.py", LINE), 100.0),)),
        "kernels": None,
    } | seen
    buckets = {"input_wait": 6.0, "device_compute": 4.0}
    evidence = evidence_of(gpu=gpu, buckets=buckets, what_if=(gain("cached-batch"), tried), **rest)
    judged = check.judge(finding_at(check, LINE, **detail), evidence)
    assert judged is not None
    assert judged.verdict in (Verdict.REFUTED, Verdict.UNMEASURED)
    assert judged.verdict is Verdict.REFUTED or judged.reason
    assert judged.impact is None


def test_what_is_known_from_one_run_says_so(rule: Callable[[str], Check]) -> None:
    check = rule("missing-cache")
    once = replace(gain("cache"), repeats=1)
    judged = check.judge(finding_at(check, LINE), evidence_of(what_if=(once,)))
    assert judged is not None
    assert judged.impact is not None
    assert judged.impact.basis == "what-if: cache, one run"


def test_a_pattern_that_the_runtime_repairs_asks_for_nothing(rule: Callable[[str], Check]) -> None:
    prefetch, maps = rule("missing-prefetch"), rule("map-not-parallel")
    assert prefetch.asks(finding_at(prefetch, LINE, injected=True)) == ()
    assert maps.asks(finding_at(maps, LINE, reason="masked")) == ()
    assert maps.asks(finding_at(maps, LINE, reason="python")) == ("parallel-map",)


def test_one_callback_of_several_gives_back_its_part(rule: Callable[[str], Check]) -> None:
    check = rule("per-batch-callback-work")
    costs = (
        CallbackCost("Slow", 4.0, spot=Spot("train.py", LINE)),
        CallbackCost("Other", 4.0, spot=Spot("train.py", 99)),
    )
    evidence = evidence_of(gpu=True, callbacks=costs, what_if=(gain("callbacks-off"),))
    judged = check.judge(check.at(Location("train.py", LINE, 1), "slow"), evidence)
    assert judged is not None
    assert judged.impact is not None
    assert judged.impact.step_share == pytest.approx(0.25)
    assert [measure.value for measure in judged.measures if measure.metric == "saved_share"] == [0.25]
