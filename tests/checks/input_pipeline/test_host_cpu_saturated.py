"""Tests of host-cpu-saturated beyond its page."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.checks.conftest import Analyse, evidence_of, finding_at, named
from tflint_gpu.checks.check import Check
from tflint_gpu.findings import Severity, Verdict
from tflint_gpu.trace.evidence import Samples

RULE = "host-cpu-saturated"


def of(analyse: Analyse, head: str, chain: str = ".map(lambda a: (tf.sin(a), a))") -> list[Severity]:
    code = f"""\
import multiprocessing
import os
import tensorflow as tf

{head}
ds = tf.data.Dataset.from_tensor_slices(tf.zeros([4096, 8])){chain}.batch(64).prefetch(2)
model = tf.keras.Sequential([tf.keras.layers.Dense(8)])
model.compile("adam", "mse")
model.fit(ds, epochs=3)
"""
    return [finding.severity for finding in named(analyse(code, select=(RULE,)), RULE)]


@pytest.mark.parametrize(
    "head",
    [
        "tf.config.threading.set_inter_op_parallelism_threads(1)",
        "tf.config.threading.set_inter_op_parallelism_threads(4)",
        "tf.config.threading.set_intra_op_parallelism_threads(1)",
        "tf.compat.v1.ConfigProto(inter_op_parallelism_threads=1)",
        'os.environ["TF_NUM_INTEROP_THREADS"] = "1"',
        'os.environ["OMP_NUM_THREADS"] = "1"',
    ],
)
def test_thread_limits_are_info(head: str, analyse: Analyse) -> None:
    assert of(analyse, head) == [Severity.INFO]


def test_one_core_is_loud_where_the_pipeline_works(analyse: Analyse) -> None:
    assert of(analyse, "os.sched_setaffinity(0, {0})") == [Severity.WARNING]
    assert of(analyse, "os.sched_setaffinity(0, {0})", "") == [Severity.INFO]


@pytest.mark.parametrize(
    "head",
    [
        "tf.config.threading.set_inter_op_parallelism_threads(16)",
        "tf.config.threading.set_intra_op_parallelism_threads(2)",
        "tf.config.threading.set_inter_op_parallelism_threads(os.cpu_count())",
        "os.sched_setaffinity(0, cores())",
        "os.sched_setaffinity(0, {0, 1})",
        'os.environ["OMP_NUM_THREADS"] = "1"\npool = multiprocessing.Pool(4)',
        'os.environ["CUDA_VISIBLE_DEVICES"] = ""\ntf.config.threading.set_inter_op_parallelism_threads(1)',
    ],
    ids=["many", "two in an op", "all", "unknown cores", "two cores", "worker processes", "no GPU"],
)
def test_is_silent_on(head: str, analyse: Analyse) -> None:
    assert of(analyse, head) == []


def test_numpy_limit_is_silent_without_work_in_tf_data(analyse: Analyse) -> None:
    assert of(analyse, 'os.environ["OMP_NUM_THREADS"] = "1"', "") == []


@pytest.mark.parametrize(
    ("cpu", "busy", "gpu", "count"),
    [(0.95, 3.0, True, 1), (0.95, 8.0, True, 0), (0.5, 3.0, True, 0), (0.95, 3.0, False, 0)],
)
def test_full_cpu_beside_an_idle_gpu_is_observed(
    cpu: float, busy: float, gpu: bool, count: int, rule: Callable[[str], Check]
) -> None:
    buckets = {"device_compute": busy, "input_wait": 10.0 - busy}
    evidence = evidence_of(10.0, gpu=gpu, samples=Samples(20, cpu_util=cpu), buckets=buckets)
    found = list(rule(RULE).observe(evidence))
    assert len(found) == count
    assert all(finding.verdict is Verdict.OBSERVED and len(finding.message) < 200 for finding in found)


def test_what_input_costs_bounds_a_limit(rule: Callable[[str], Check]) -> None:
    check = rule(RULE)
    buckets = {"device_compute": 5.0, "input_wait": 5.0}
    judged = check.judge(finding_at(check, 5), evidence_of(10.0, gpu=True, buckets=buckets))
    assert judged is not None
    assert judged.verdict is Verdict.CONFIRMED
