"""Conditions on the class of a value: settled where the text tells the class, open otherwise."""

from __future__ import annotations

import pytest

from tests.program.conftest import Read

VALUES = {
    "'train.tfrecord'": "str",
    "['a', 'b']": "list",
    "glob.glob('*.tfrecord')": "list",
    "glob.glob('*.tfrecord')[:8]": "list",
    "sorted(glob.glob('*.tfrecord'))": "list",
    "(1, 2)": "tuple",
    "f'{sys.argv[1]}.tfrecord'": "str",
    "os.path.join(sys.argv[1], 'x')": "str",
}


def ops(read: Read, value: str, test: str) -> list[str]:
    """Return the stages of a pipeline that `test` on `value` decides over: ``prefetch`` where it holds."""
    text = f"""
import glob, os, sys
value = {value}
ds = base.batch(8)
if {test}:
    ds = ds.prefetch(2)
model.fit(ds)
"""
    (run,) = read(text).runs
    assert run.pipeline is not None
    return [f"{stage.op}?" if stage.conditional else stage.op for stage in run.pipeline.stages]


@pytest.mark.parametrize(("value", "kind"), VALUES.items())
def test_the_class_is_told(read: Read, value: str, kind: str) -> None:
    assert ops(read, value, f"isinstance(value, {kind})")[-1] == "prefetch"
    assert ops(read, value, f"isinstance(value, (bytes, {kind}))")[-1] == "prefetch"
    assert ops(read, value, "isinstance(value, bytes)")[-1] == "batch"
    assert ops(read, value, f"type(value) is {kind}")[-1] == "prefetch"
    assert ops(read, value, f"type(value) != {kind}")[-1] == "batch"
    assert ops(read, value, f"type(value) in (bytes, {kind})")[-1] == "prefetch"
    assert ops(read, value, f"type(value) not in [bytes, {kind}]")[-1] == "batch"


def test_truth_is_a_number_too(read: Read) -> None:
    assert ops(read, "True", "isinstance(value, int)")[-1] == "prefetch"
    assert ops(read, "3", "isinstance(value, bool)")[-1] == "batch"


def test_a_dataset_is_told(read: Read) -> None:
    assert ops(read, "base", "isinstance(value, tf.data.Dataset)")[-1] == "prefetch"
    assert ops(read, "'x'", "isinstance(value, tf.data.Dataset)")[-1] == "batch"


@pytest.mark.parametrize(
    ("value", "test"),
    [
        ("sys.argv", "isinstance(value, list)"),
        ("None", "isinstance(value, str)"),
        ("'x'", "isinstance(value, os.PathLike)"),
        ("sys.argv", "type(value) is list"),
        ("'x'", "type(value) is sys.argv"),
    ],
)
def test_what_the_run_decides_is_open(read: Read, value: str, test: str) -> None:
    assert ops(read, value, test)[-1] == "prefetch?"


def test_one_file_or_many(read: Read) -> None:
    text = """
import glob
def files(names):
    if isinstance(names, str):
        names = [names]
    return tf.data.TFRecordDataset(names)
model.fit(files(glob.glob("*.tfrecord")).batch(8).prefetch(2))
"""
    (run,) = read(text).runs
    assert run.pipeline is not None
    assert type(run.pipeline.dataset.source.call.args[0]).__name__ == "Produced"
