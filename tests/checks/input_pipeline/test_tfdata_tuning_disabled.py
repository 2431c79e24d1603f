"""Tests of tfdata-tuning-disabled beyond its page."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.checks.conftest import Analyse, evidence_of, finding_at, named
from tflint_gpu.checks.check import Check
from tflint_gpu.findings import Severity, Verdict

RULE = "tfdata-tuning-disabled"


def of(analyse: Analyse, stages: str = "", options: str = "", head: str = "") -> list[Severity]:
    code = f"""\
import argparse
import os
import tensorflow as tf

BATCH = 64
{head}
ds = tf.data.Dataset.from_tensor_slices((tf.zeros([4096, 8]), tf.zeros([4096, 1])))
ds = ds{stages or ".batch(BATCH).prefetch(2)"}
options = tf.data.Options()
{options}
ds = ds.with_options(options)
model = tf.keras.Sequential([tf.keras.layers.Dense(64), tf.keras.layers.Dense(1)])
model.compile("adam", "mse")
model.fit(ds, epochs=3)
"""
    return [finding.severity for finding in named(analyse(code, select=(RULE,)), RULE)]


@pytest.mark.parametrize(
    "option",
    [
        "autotune.enabled = False",
        "experimental_optimization.autotune = False",
        "experimental_optimization.apply_default_optimizations = False",
        "experimental_optimization.map_parallelization = False",
        "experimental_optimization.inject_prefetch = False",
        "experimental_optimization.map_and_batch_fusion = False",
        "threading.private_threadpool_size = 1",
        "experimental_threading.private_threadpool_size = 1",
        "autotune.cpu_budget = 1",
    ],
)
def test_option_is_loud(option: str, analyse: Analyse) -> None:
    assert of(analyse, options=f"options.{option}") == [Severity.WARNING]


@pytest.mark.parametrize(
    "option",
    [
        "autotune.enabled = True",
        "threading.private_threadpool_size = 16",
        "threading.max_intra_op_parallelism = 1",
        "deterministic = False",
        "experimental_optimization.noop_elimination = False",
        "autotune.enabled = False  # not enough memory",
        "autotune.enabled = tuned()",
    ],
)
def test_is_silent_on_option(option: str, analyse: Analyse) -> None:
    assert of(analyse, options=f"options.{option}") == []


def test_option_of_a_default_that_a_user_may_change_is_info(analyse: Analyse) -> None:
    head = 'p = argparse.ArgumentParser()\np.add_argument("--tune", default=False)\ntune = p.parse_args().tune'
    assert of(analyse, options="options.autotune.enabled = tune", head=head) == [Severity.INFO]


@pytest.mark.parametrize("count", [1, 2, 4, 8, 16])
def test_is_silent_on_short_prefetch(count: int, analyse: Analyse) -> None:
    assert of(analyse, f".batch(BATCH).prefetch({count})") == []


def test_prefetch_counts(analyse: Analyse) -> None:
    assert of(analyse, ".batch(BATCH).prefetch(BATCH)") == [Severity.INFO]
    assert of(analyse, ".batch(BATCH).prefetch(1000)") == [Severity.INFO]
    assert of(analyse, ".prefetch(1000).batch(BATCH).prefetch(2)") == []
    assert of(analyse, ".batch(BATCH).shuffle(8).prefetch(0)") == [Severity.WARNING]
    assert of(analyse, ".map(lambda a, b: (tf.sin(a), b)).batch(BATCH).prefetch(0)") == [Severity.INFO]


def test_parallel_calls(analyse: Analyse) -> None:
    chain = ".map(lambda a, b: (tf.sin(a), b), num_parallel_calls={}).batch(BATCH).prefetch(2)"
    assert of(analyse, chain.format(2)) == [Severity.INFO]
    assert of(analyse, chain.format(8)) == [Severity.HINT]
    assert of(analyse, chain.format("os.cpu_count()")) == []
    assert of(analyse, chain.format("tf.data.AUTOTUNE")) == []


def test_is_silent_in_benchmarks_and_without_training(analyse: Analyse) -> None:
    code = (
        "import tensorflow as tf\nds = tf.data.Dataset.range(8).batch(2).prefetch(0)\nfor x in ds:\n    print(x)\n"
    )
    assert named(analyse({"benchmarks/input.py": code, "look.py": code}, select=(RULE,)), RULE) == []


def test_wait_for_input_bounds_the_gain(rule: Callable[[str], Check]) -> None:
    check = rule(RULE)
    waits = evidence_of(10.0, gpu=True, buckets={"device_compute": 6.0, "input_wait": 4.0})
    ready = evidence_of(10.0, gpu=True, buckets={"device_compute": 10.0})
    verdicts = [judged.verdict for e in (waits, ready) if (judged := check.judge(finding_at(check, 9), e))]
    assert verdicts == [Verdict.CONFIRMED, Verdict.MINOR]
