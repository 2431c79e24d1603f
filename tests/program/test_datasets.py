"""tf.data as values: sources, stages, nested datasets, options, and the functions handed to them."""

from __future__ import annotations

import pytest

from tests.program.conftest import Read, ops, plain, trained


@pytest.mark.parametrize(
    ("chain", "stages"),
    [
        ("tf.data.TFRecordDataset(['a']).batch(32)", "TFRecordDataset batch"),
        ("tf.data.TextLineDataset('a').batch(32)", "TextLineDataset batch"),
        (
            "tf.data.Dataset.list_files('*').interleave(tf.data.TFRecordDataset).batch(32)",
            "list_files interleave batch",
        ),
        (
            "tf.data.Dataset.range(9).shuffle(9).repeat().batch(3).prefetch(2)",
            "range shuffle repeat batch prefetch",
        ),
        ("tf.keras.utils.image_dataset_from_directory('d')", "image_dataset_from_directory"),
        ("tf.keras.preprocessing.image_dataset_from_directory('d')", "image_dataset_from_directory"),
        ("tf.data.experimental.make_csv_dataset('f', 32)", "make_csv_dataset"),
        ("tf.compat.v1.data.Dataset.range(9).batch(3)", "range batch"),
        ("base.apply(tf.data.experimental.map_and_batch(f, 32))", "from_tensor_slices map_and_batch"),
        ("base.apply(tf.data.experimental.shuffle_and_repeat(9)).batch(3)", "from_tensor_slices shuffle batch"),
        ("base.padded_batch(32)", "from_tensor_slices padded_batch"),
        (
            "base.window(8, shift=1).flat_map(lambda w, v: w.batch(8)).batch(32)",
            "from_tensor_slices window flat_map batch",
        ),
        ("base.with_options(tf.data.Options()).batch(32)", "from_tensor_slices batch"),
        ("tf.data.Dataset.zip((base, base)).batch(32)", "zip batch"),
        ("tf.data.Dataset.zip(base, base).batch(32)", "zip batch"),
        ("base.concatenate(base).batch(32)", "from_tensor_slices concatenate batch"),
        ("base.unbatch().enumerate().cache('f').batch(32)", "from_tensor_slices unbatch enumerate cache batch"),
        ("base.batch(32).as_numpy_iterator()", "from_tensor_slices batch"),
    ],
)
def test_stages_in_order(read: Read, chain: str, stages: str) -> None:
    program = read(f"def f(x, y): return x\nmodel.fit({chain})\n")

    assert trained(program) == [stages.split()]


@pytest.mark.parametrize(
    "chain",
    [
        "unheard_of().batch(32)",
        "base.concatenate(unheard_of()).batch(32)",
        "tf.data.Dataset.zip((base, unheard_of())).batch(32)",
        "base.apply(unheard_of).batch(32)",
        "tf.data.Dataset.sample_from_datasets([base, unheard_of()])",
        "base.no_such_method().batch(32)",
    ],
)
def test_chain_with_an_unknown_link_is_no_pipeline(read: Read, chain: str) -> None:
    assert trained(read(f"model.fit({chain})\n")) == [[]]


@pytest.mark.parametrize(
    ("load", "use"),
    [
        ("ds = tfds.load('m', split='train')", "ds"),
        ("ds, info = tfds.load('m', split='train', with_info=True)", "ds"),
        ("ds = tfds.load('m')", "ds['train']"),
        ("ds, val = tfds.load('m', split=['train', 'test'])", "ds"),
        ("(ds, val), info = tfds.load('m', split=['train', 'test'], with_info=True)", "ds"),
        ("ds = tfds.builder('m').as_dataset(split='train')", "ds"),
    ],
)
def test_tensorflow_datasets(read: Read, load: str, use: str) -> None:
    program = read(f"import tensorflow_datasets as tfds\n{load}\nmodel.fit({use}.batch(32))\n")

    assert trained(program) == [["tfds", "batch"]]


def test_both_subsets_of_a_folder(read: Read) -> None:
    program = read("a, b = tf.keras.utils.image_dataset_from_directory('d', subset='both')\nmodel.fit(a)\n")

    assert trained(program) == [["image_dataset_from_directory"]]


def test_interleaved_datasets_are_nested(read: Read) -> None:
    program = read(
        """
def read_file(name):
    return tf.data.TFRecordDataset(name).map(tf.io.decode_jpeg)

model.fit(tf.data.Dataset.list_files("*").interleave(read_file).batch(32))
"""
    )
    (stage,) = [stage for _, stage in program.pipelines[0].stages_of("interleave")]

    assert [ops(dataset) for dataset in stage.nested] == [["TFRecordDataset", "map"]]


@pytest.mark.parametrize(
    "mapped",
    [
        "base.map(decode)",
        "base.map(lambda x, y: decode(x, y))",
        "base.map(functools.partial(decode, y=1))",
        "base.map(tf.function(decode))",
        "base.map(Decoder())",
        "base.map(Decoder().decode)",
        "base.map(map_func=decode)",
        "base.apply(lambda ds: ds.map(decode))",
    ],
)
def test_calls_inside_a_stage_are_seen(read: Read, mapped: str) -> None:
    program = read(
        f"""
import functools

def decode(x, y):
    return tf.image.resize(x, [8, 8])

class Decoder:
    def __call__(self, x, y):
        return decode(x, y)

    def decode(self, x, y):
        return decode(x, y)

model.fit({mapped}.batch(32))
"""
    )
    (stage,) = [stage for _, stage in program.pipelines[0].stages_of("map")]

    assert "tf.image.resize" in [call.callee for call in stage.calls]
    assert all(
        call.context.regions[-1] == "dataset"
        for call in program.calls_to("tf.image.resize")
        if call in stage.calls
    )


def test_variables_that_a_stage_captures(read: Read) -> None:
    program = read(
        """
v = tf.Variable(1.0)
model.fit(base.map(lambda x, y: (x * v, y)).map(lambda x, y: (x, y)).batch(32))
"""
    )

    assert [stage.captures_variable for stage in program.pipelines[0].stages] == [False, True, False, False]


def test_options_of_a_dataset(read: Read) -> None:
    program = read(
        """
options = tf.data.Options()
options.autotune.enabled = False
options.deterministic = False
model.fit(base.with_options(options).batch(32))
"""
    )
    dataset = program.pipelines[0].dataset

    assert {name: plain(value) for name, value in dataset.options.items()} == {
        "autotune.enabled": False,
        "deterministic": False,
    }


def test_place_of_a_stage_in_a_broken_chain_is_its_own_name(read: Read) -> None:
    text = "ds = (\n    base.map(lambda x, y: (x, y))\n    .batch(32)\n)\nmodel.fit(ds)\n"
    program = read(
        {
            "a/train.py": "import tensorflow as tf\nmodel = tf.keras.Model()\nbase = tf.data.Dataset.range(4)\n"
            + text
        },
        head=False,
    )
    places = [(stage.location.line, stage.location.column) for stage in program.pipelines[0].stages]

    assert places == [(3, 8), (5, 5), (6, 6)]


def test_distributed_dataset(read: Read) -> None:
    program = read(
        """
strategy = tf.distribute.MirroredStrategy()
model.fit(strategy.experimental_distribute_dataset(base.batch(32)))
def make(context):
    return base.batch(8)
model.fit(strategy.distribute_datasets_from_function(make))
"""
    )

    assert [pipeline.distributed for pipeline in program.pipelines] == [True, True]


def test_chain_that_branches_leaves_the_first_as_it_was(read: Read) -> None:
    program = read("a = base.cache()\nb = a.shuffle(9)\nmodel.fit(a.batch(32))\nmodel.fit(b.batch(32))\n")

    assert trained(program) == [
        ["from_tensor_slices", "cache", "batch"],
        ["from_tensor_slices", "cache", "shuffle", "batch"],
    ]
