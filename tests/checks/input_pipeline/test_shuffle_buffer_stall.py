"""What the page of shuffle-buffer-stall does not show."""

from __future__ import annotations

from tests.checks.conftest import Analyse, named

NAME = "shuffle-buffer-stall"
HEAD = (
    "import glob\nimport tensorflow as tf\n\n"
    "files = glob.glob('photos/*.jpg')\n\n"
    "def read(path):\n"
    "    image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)\n"
    "    return tf.image.resize(image, (224, 224))\n\n"
    "ds = tf.data.Dataset.from_tensor_slices(files)\n"
)
READ = ".map(read, num_parallel_calls=tf.data.AUTOTUNE)"
TAIL = (
    ".batch(64).prefetch(2)\n"
    "model = tf.keras.applications.ResNet50(weights=None, classes=10)\n"
    "model.compile('adam', 'mse')\nmodel.fit(ds)\n"
)


def told(analyse: Analyse, chain: str) -> list[str]:
    return [finding.message for finding in named(analyse(f"{HEAD}ds = ds{chain}{TAIL}"), NAME)]


def test_buffer_as_long_as_the_data_set(analyse: Analyse) -> None:
    (message,) = told(analyse, f"{READ}.shuffle(len(files))")
    assert "all files" in message


def test_size_is_told_where_the_picture_is_known(analyse: Analyse) -> None:
    (message,) = told(analyse, f"{READ}.shuffle(1000)")
    assert "602 MB" in message


def test_small_buffer_is_fine(analyse: Analyse) -> None:
    assert told(analyse, f".shuffle(len(files)){READ}.shuffle(100)") == []


def test_cached_pictures_are_in_memory(analyse: Analyse) -> None:
    assert told(analyse, f"{READ}.cache().shuffle(5000)") == []


def test_serialized_records_are_fine(analyse: Analyse) -> None:
    text = HEAD + (
        "ds = tf.data.TFRecordDataset(files, num_parallel_reads=8).shuffle(10_000)\n"
        "ds = ds.map(lambda r: tf.io.decode_jpeg(r), num_parallel_calls=tf.data.AUTOTUNE)" + TAIL
    )
    assert named(analyse(text), NAME) == []


def test_validation_is_not_shuffled_before_steps(analyse: Analyse) -> None:
    text = f"{HEAD}ds = ds{READ}.shuffle(1000)" + TAIL.replace("model.fit(ds)", "model.evaluate(ds)")
    assert named(analyse(text), NAME) == []
