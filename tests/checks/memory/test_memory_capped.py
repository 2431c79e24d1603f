"""What the page of memory-capped does not show: shared cards, fractions, and the trace."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tests.checks.conftest import Analyse, evidence_of, finding_at, named
from tflint_gpu.checks.check import Check
from tflint_gpu.findings import Severity, Verdict

NAME = "memory-capped"
TRAIN = (
    "model = tf.keras.applications.ResNet50(weights=None)\n"
    "model.compile('adam', 'mse')\n"
    "model.fit(tf.zeros((64, 224, 224, 3)), tf.zeros((64, 1000)), batch_size=64)\n"
)
CAP = (
    "import tensorflow as tf\n"
    "gpus = tf.config.list_physical_devices('GPU')\n"
    "tf.config.set_logical_device_configuration(gpus[0], "
    "[tf.config.LogicalDeviceConfiguration(memory_limit=1024)])\n"
)


def severities(findings: list) -> list[Severity]:  # type: ignore[type-arg]
    return [finding.severity for finding in named(findings, NAME)]


def test_old_spelling_and_fraction_count_too(analyse: Analyse) -> None:
    old = CAP.replace("set_logical_device_configuration", "experimental.set_virtual_device_configuration")
    old = old.replace("LogicalDeviceConfiguration", "experimental.VirtualDeviceConfiguration")
    assert severities(analyse(old + TRAIN)) == [Severity.WARNING]
    fraction = (
        "import tensorflow as tf\nconfig = tf.compat.v1.ConfigProto()\n"
        "config.gpu_options.per_process_gpu_memory_fraction = 0.3\n" + TRAIN
    )
    assert severities(analyse(fraction)) == [Severity.WARNING]


def test_nearly_the_whole_card_is_no_cap(analyse: Analyse) -> None:
    text = (
        "import tensorflow as tf\noptions = tf.compat.v1.GPUOptions(per_process_gpu_memory_fraction=0.95)\n"
        + TRAIN
    )
    assert severities(analyse(text)) == []


def test_limit_as_large_as_a_whole_card_is_info(analyse: Analyse) -> None:
    assert severities(analyse(CAP.replace("1024", "30 * 1024") + TRAIN)) == [Severity.INFO]


def test_card_cut_into_logical_ones_is_info(analyse: Analyse) -> None:
    part = "tf.config.LogicalDeviceConfiguration(memory_limit=1024)"
    text = CAP.replace(f"[{part}]", f"[{part}, {part}]") + TRAIN
    assert set(severities(analyse(text))) == {Severity.INFO}


def test_processes_that_share_the_card_make_it_info(analyse: Analyse) -> None:
    text = "import multiprocessing\n" + CAP + TRAIN + "multiprocessing.Process(target=print).start()\n"
    assert severities(analyse(text)) == [Severity.INFO]


def test_program_that_only_serves_is_info(analyse: Analyse) -> None:
    assert severities(analyse(CAP)) == [Severity.INFO]


def test_judge_compares_the_peak_with_the_limit(rule: Callable[[str], Check]) -> None:
    check = rule(NAME)
    finding = finding_at(check, 3, limit=1024 * 2**20)
    low = evidence_of(gpu=True, facts={"peak_memory_bytes": 200 * 2**20})
    full = replace(low, facts={"peak_memory_bytes": 1020 * 2**20})
    verdicts = [check.judge(finding, evidence) for evidence in (low, full)]
    assert [judged.verdict for judged in verdicts if judged] == [Verdict.REFUTED, Verdict.CONFIRMED]
    assert check.judge(finding, evidence_of(gpu=True)) is None
