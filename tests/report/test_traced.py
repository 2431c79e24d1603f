"""The trace's summary: what is in it, and what is not."""

from __future__ import annotations

from dataclasses import replace

from tests.report.conftest import evidence
from tflint_gpu.report.traced import summary
from tflint_gpu.trace.evidence import Device, Environment, Losses, Placement, Samples, Spot, VerifiedFix, WhatIf


def line_with(text: str, lines: list[str]) -> str:
    (found,) = [line for line in lines if text in line]
    return found


def test_buckets_stand_largest_first_and_empty_ones_not_at_all() -> None:
    lines = summary(evidence())
    start = next(index for index, line in enumerate(lines) if line.startswith("step (n = 20)"))
    names = [line.split("  ")[0] for line in lines[start + 2 : start + 7]]
    assert names == ["input wait", "device compute", "unknown", "launch", "host to device"]
    assert not any("collectives" in line for line in lines)


def test_a_spread_is_told_from_four_steps_on() -> None:
    window = evidence().window
    assert window is not None
    for steps, told in ((1, False), (3, False), (4, True)):
        (line,) = [
            line
            for line in summary(replace(evidence(), window=replace(window, steps=steps)))
            if " a step: " in line
        ]
        assert f"n = {steps} steps" in line
        assert ("spread" in line) is told


def test_what_if_tells_gain_loss_and_noise_apart() -> None:
    runs = (
        WhatIf("cached-batch", 17.0, 41.2, 2.42, 3, 0.04, 2.33, 2.52),
        WhatIf("xla", 50.0, 41.2, 0.82, 3, 0.02, 0.80, 0.84),
        WhatIf("batch-x2", 41.0, 41.2, 1.0, 3, 0.05, 0.95, 1.05),
        WhatIf("batch-x4", 40.0, 41.2, 1.3, 3, 0.05, 1.25, 1.35, note="out of memory once"),
    )
    lines = summary(evidence(what_if=runs))
    assert line_with("cached-batch", lines).endswith("gives back 59 % of the step")
    assert line_with("xla", lines).endswith("slower")
    assert line_with("batch-x2", lines).endswith("no difference beyond the noise")
    assert line_with("batch-x4", lines).endswith("out of memory once")


def test_what_if_tells_what_users_count_in_where_it_is_known() -> None:
    rates = {"baseline_samples_per_second": 777.0, "samples_per_second": 1882.0}
    peaks = {"baseline_peak_bytes": 3 << 30, "peak_bytes": 5 << 30}
    plain = WhatIf("cached-batch", 17.0, 41.2, 2.42, 3, 0.04, 2.33, 2.52)
    doubled = WhatIf("batch-x2", 17.0, 41.2, 2.42, 3, 0.04, 2.33, 2.52, **rates, **peaks)
    lines = summary(evidence(what_if=(plain, doubled)))
    assert "777 → 1882" in line_with("batch-x2", lines)
    assert "3 GiB → 5 GiB" in line_with("batch-x2", lines)
    assert line_with("batch-x2", lines).endswith("convergence is not tested")
    # What the GPU does is known of a change that gives it the same work, and the peak is the GPU's.
    busy = evidence().gpu_busy_share
    assert busy is not None
    assert f"{busy * 41.2 / 17.0 * 100:.0f} %" in line_with("cached-batch", lines)
    (head,) = (line for line in lines if line.startswith("what if"))
    assert "GPU busy" in head
    assert "GPU memory" in head
    bare = summary(evidence(gpu=False, what_if=(plain,)))
    (head,) = (line for line in bare if line.startswith("what if"))
    assert not {"samples/s", "GPU busy", "memory"} & set(head.split("  "))


def test_fixes_that_were_tried_tell_gain_and_losses() -> None:
    same = Losses((1, 5), (1.0, 0.5), (1.0, 0.5), 0.0, 0.0, agree=True)
    other = replace(same, difference=0.25, agree=False)
    noisy = replace(same, difference=0.02, noise=0.1)
    fixes = (
        tried("helps", WhatIf("helps", 20.0, 40.0, 2.0, 3, 0.04, 1.9, 2.1), same),
        tried("useless", WhatIf("useless", 40.0, 40.0, 1.0, 3, 0.04, 0.95, 1.05), None),
        replace(tried("slower", WhatIf("slower", 50.0, 40.0, 0.8, 3, 0.04, 0.75, 0.85), other), safety="unsafe"),
        tried("unsound", WhatIf("unsound", 20.0, 40.0, 2.0, 3, 0.04, 1.9, 2.1), other),
        tried("unsteady", WhatIf("unsteady", 20.0, 40.0, 2.0, 3, 0.04, 1.9, 2.1), noisy),
        replace(tried("broken", None, None), note="the fixed program does not run: the run failed"),
    )
    lines = summary(evidence(verified_fixes=fixes))
    ends = {
        "helps": "gives back 50 % of the step; losses of the first 5 steps agree",
        "useless": "not helpful: no gain beyond the noise; no losses of the same steps to compare",
        "slower": "not helpful: slower; losses of the first 5 steps differ by up to 25 %",
        "unsound": "do not make it, it is not safe here: losses of the first 5 steps differ by up to 25 %",
        "unsteady": "losses of the first 5 steps agree within what they differ from run to run (10 %)",
        "broken": "the fixed program does not run: the run failed",
    }
    for name, end in ends.items():
        assert line_with(name, lines).endswith(end)
    assert "2.00 ×" in line_with("helps", lines)


def tried(name: str, result: WhatIf | None, losses: Losses | None) -> VerifiedFix:
    return VerifiedFix("TFG101", name, "safe", (Spot("m.py", 3),), result, losses)


def test_ops_on_the_gpu_or_outside_the_step_are_left_out() -> None:
    placements = (
        Placement("AsString", 1, "cpu", False, Spot("m.py", 3), 0.5, reason="no GPU kernel"),
        Placement("MatMul", 1, "gpu", False, Spot("m.py", 4), 0.5, reason="fits"),
        Placement("ReadFile", 1, "cpu", False, Spot("m.py", 5), 0.5, reason="input", in_step=False),
    )
    lines = summary(evidence(placements=placements))
    assert line_with("AsString", lines).split() == ["AsString", "1", "m.py:3", "0.5", "no", "GPU", "kernel"]
    assert any(line.startswith("runs on the CPU") for line in lines)
    assert not any("MatMul" in line or "ReadFile" in line for line in lines)


def test_many_ops_are_cut_and_counted() -> None:
    ops = tuple(
        Placement(f"Op{number}", 1, "cpu", True, Spot("m.py", number), float(number), reason="no GPU kernel")
        for number in range(1, 14)
    )
    lines = summary(evidence(placements=ops))
    assert sum("(predicted)" in line for line in lines) == 10
    assert any(line.startswith("Op13 ") for line in lines)
    assert "… and 3 more, all of them in --output-format json" in lines


def test_no_samples_say_why() -> None:
    lines = summary(evidence(samples=Samples(note="no NVIDIA driver")))
    assert "no NVIDIA driver" in lines


def test_device_count_and_kind_are_said_once() -> None:
    two = Environment(device=Device("NVIDIA H200", "gpu", traced=True, count=2))
    assert summary(evidence(environment=two))[0] == "2 × NVIDIA H200 (GPU)"
    cpu = Environment(tensorflow="2.21.0", device=Device("CPU", "cpu", traced=True))
    assert summary(evidence(environment=cpu))[0] == "CPU, TensorFlow 2.21.0"


def test_a_trace_without_steps_has_no_tables() -> None:
    lines = summary(evidence(window=None, steps=(), what_if=(), placements=(), samples=None, muted=(), notes=()))
    assert lines == ["NVIDIA H200 (GPU), TensorFlow 2.21.0, Keras 3.15.1"]
