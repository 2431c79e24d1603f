"""Datasets that are made again with one change, by one real TensorFlow for all tests."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.trace

SCRIPT = """
import json, sys, types
import tensorflow as tf
from tflint_gpu.trace.probe.recipes import CHANGES, Recipes, recipe_of

run = types.SimpleNamespace(tensorflow=tf, keras_depth=lambda: 0)
recipes = Recipes(run)
recipes.install(tf)

def python(x):
    made.append(int(x))
    return x

made = []
source = tf.data.Dataset.range(64)
plain = source.shuffle(8, seed=1).map(lambda x: x + 1).batch(4)
datasets = {
    "plain": plain,
    "prefetched": plain.prefetch(2),
    "parallel": source.map(lambda x: x + 1, num_parallel_calls=2).batch(4),
    "one call": source.map(lambda x: x + 1, 1).batch(4),
    "files": source.flat_map(lambda x: tf.data.Dataset.from_tensors(x)).batch(4),
    "interleave": source.interleave(lambda x: tf.data.Dataset.from_tensors(x), cycle_length=2).batch(4),
    "no work": source.batch(4),
    "random": source.map(lambda x: x + tf.random.uniform([], maxval=3, dtype=tf.int64)).batch(4),
    "cached": source.map(lambda x: x + 1).cache().batch(4),
    "python": source.map(lambda x: tf.py_function(python, [x], tf.int64)).repeat(2).shuffle(8).batch(4),
}
found = {}
for name, dataset in datasets.items():
    for change in CHANGES:
        again = recipes.again(change, dataset, 4)
        if again is not None:
            steps = recipe_of(again)[1]
            asked = [step for step in steps if "num_parallel_calls" in step.arguments]
            rows = sorted(int(x) for batch in again.take(16) for x in batch.numpy().reshape(-1))
            found[name + ": " + change] = {
                "steps": [step.name for step in steps],
                "parallel": [step.name for step in asked if not step.serial()],
                "rows": rows,
                "calls": len(made),
                "deterministic": again.options().deterministic,
            }
        made.clear()
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found() -> dict[str, dict[str, object]]:
    pytest.importorskip("tensorflow")
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=root, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    told: dict[str, dict[str, object]] = json.loads(done.stdout.splitlines()[-1])
    return told


def changed(found: dict[str, dict[str, object]], change: str) -> set[str]:
    return {name.partition(":")[0] for name in found if name.endswith(f": {change}")}


def test_a_change_that_changes_nothing_is_none(found: dict[str, dict[str, object]]) -> None:
    every = {name.partition(":")[0] for name in found} | {"prefetched"}
    assert changed(found, "prefetch") == every - {"prefetched"}
    assert changed(found, "parallel-map") == {"plain", "prefetched", "one call", "random", "cached", "python"}
    assert changed(found, "parallel-read") == {"files", "interleave"}
    assert changed(found, "cache") == every - {"no work", "random", "cached"}


def test_the_elements_stay_the_same(found: dict[str, dict[str, object]]) -> None:
    for change in ("prefetch", "parallel-map", "determinism-off"):
        assert found[f"plain: {change}"]["rows"] == list(range(1, 65))
    assert found["files: parallel-read"]["rows"] == list(range(64))


def test_only_what_the_change_names_is_changed(found: dict[str, dict[str, object]]) -> None:
    assert found["plain: prefetch"]["steps"] == ["shuffle", "map", "batch", "prefetch"]
    assert found["plain: prefetch"]["parallel"] == []
    assert found["plain: parallel-map"]["parallel"] == ["map"]
    assert found["files: parallel-read"]["steps"] == ["interleave", "batch"]
    assert found["interleave: parallel-read"]["parallel"] == ["interleave"]
    assert found["plain: determinism-off"]["deterministic"] is False
    assert found["plain: parallel-map"]["deterministic"] is None


def test_a_cache_keeps_a_few_batches_of_what_is_the_same_each_time(found: dict[str, dict[str, object]]) -> None:
    cached = found["python: cache"]
    assert cached["steps"] == ["map", "take", "cache", "repeat", "shuffle", "batch"]
    # 16 batches of 4 were drawn, and the function ran for the elements of four of them.
    assert cached["calls"] == 16
    assert len(set(cached["rows"])) == 16  # type: ignore[arg-type, call-overload]
