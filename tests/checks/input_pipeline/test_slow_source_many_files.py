from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.checks.conftest import Analyse, evidence_of, finding_at, named
from tflint_gpu.checks.check import Check
from tflint_gpu.findings import Severity, Verdict

RULE = "slow-source-many-files"
MODEL = (
    "model = tf.keras.applications.MobileNetV2(weights=None)\n"
    'model.compile("adam", "sparse_categorical_crossentropy")\n'
)
LOADER = "tf.keras.utils.image_dataset_from_directory"


def photos(path: str, after: str = "", role: str = "model.fit(ds, epochs=9)") -> str:
    return f"import os\nimport tensorflow as tf\nds = {LOADER}({path})\n{after}{MODEL}{role}\n"


@pytest.mark.parametrize(
    "path",
    [
        "'/content/drive/MyDrive/photos'",
        "os.path.join('/content/drive', 'MyDrive', 'photos')",
        "f'/content/drive/MyDrive/photos'",
        "'gs://bucket/photos'",
        "'hdfs://cluster/photos'",
    ],
)
def test_remote_folders(analyse: Analyse, path: str) -> None:
    assert [finding.severity for finding in named(analyse(photos(path)), RULE)] == [Severity.WARNING]


@pytest.mark.parametrize(
    "text",
    [
        photos("'/content/photos'"),
        photos("'/mnt/data/photos'"),
        photos("unheard_of()"),
        photos("tf.keras.utils.get_file('photos', 'https://example.org/photos.tgz', cache_dir='gs://b')"),
        photos("'/content/drive/MyDrive/photos'", "ds = ds.cache('/content/kept')\n"),
        photos("'/content/drive/MyDrive/photos'", role="model.predict(ds)"),
    ],
    ids=["local", "a mount may be a disk", "unknown", "downloaded once", "cached", "read once"],
)
def test_silent(analyse: Analyse, text: str) -> None:
    assert named(analyse(text), RULE) == []


def test_quiet_for_validation(analyse: Analyse) -> None:
    text = photos(
        "'/content/photos'",
        f"far = {LOADER}('/content/drive/MyDrive/val')\n",
        "model.fit(ds, validation_data=far)",
    )
    assert [finding.severity for finding in named(analyse(text), RULE)] == [Severity.INFO]


@pytest.mark.parametrize(
    ("reads", "count"),
    [("", 1), (", num_parallel_reads=8", 0), (", num_parallel_reads=unheard_of()", 0)],
    ids=["one at a time", "eight at a time", "unknown"],
)
def test_shards_in_a_bucket(analyse: Analyse, reads: str, count: int) -> None:
    text = (
        f"import tensorflow as tf\nds = tf.data.TFRecordDataset(['gs://b/1', 'gs://b/2']{reads})\n"
        "ds = ds.batch(64).prefetch(2)\n" + MODEL + "model.fit(ds, epochs=9)\n"
    )
    assert len(named(analyse(text), RULE)) == count


def test_legacy_generator_over_a_folder(analyse: Analyse) -> None:
    text = (
        "import tensorflow as tf\n"
        "source = tf.keras.preprocessing.image.ImageDataGenerator()\n"
        "train = source.flow_from_directory('/content/drive/MyDrive/photos')\n"
        + MODEL
        + "model.fit(train, epochs=9)\n"
    )
    assert len(named(analyse(text), RULE)) == 1


def test_quiet_where_a_generator_parses_shards(analyse: Analyse) -> None:
    text = (
        "import pandas as pd\nimport tensorflow as tf\n"
        "def rows():\n    for path in ['a', 'b']:\n        yield pd.read_pickle(path).to_numpy()\n"
        "ds = tf.data.Dataset.from_generator(rows, output_signature=tf.TensorSpec([None, 8])).prefetch(2)\n"
        + MODEL
        + "model.fit(ds, epochs=9)\n"
    )
    assert [finding.severity for finding in named(analyse(text), RULE)] == [Severity.INFO]


def test_reading_a_table_once_is_fine(analyse: Analyse) -> None:
    text = "import pandas as pd\nimport tensorflow as tf\ntable = pd.read_csv('a.csv').to_numpy()\n" + MODEL
    assert named(analyse(text + "model.fit(table, table, epochs=9)\n"), RULE) == []


@pytest.mark.parametrize(("wait", "verdict"), [(6.0, Verdict.CONFIRMED), (0.1, Verdict.MINOR)])
def test_judged_by_the_wait_for_input(rule: Callable[[str], Check], wait: float, verdict: Verdict) -> None:
    check = rule(RULE)
    judged = check.judge(finding_at(check, 3), evidence_of(buckets={"input_wait": wait, "host": 10.0 - wait}))
    assert judged is not None
    assert judged.verdict is verdict


@pytest.mark.parametrize(
    ("kept", "read", "line"),
    [
        ("self.file = h5py.File(path)", "self.file['x'][index * 64 : index * 64 + 64]", 9),
        ("file = h5py.File(path)\n        self.x = file['x']", "np.stack([self.x[row] for row in range(64)])", 10),
        ("self.x = h5py.File(path)['x'][:]", "self.x[index * 64 : index * 64 + 64]", None),
        ("with h5py.File(path) as file:\n            self.x = file['x'][()]", "self.x[index]", None),
        ("self.x = np.asarray(h5py.File(path)['x'])", "self.x[index]", None),
    ],
    ids=["file kept", "data set kept", "read whole", "closed again", "array of it"],
)
def test_stands_where_a_kept_hdf5_file_is_read(analyse: Analyse, kept: str, read: str, line: int | None) -> None:
    text = (
        "import h5py, numpy as np, tensorflow as tf\n"
        "class Rows(tf.keras.utils.Sequence):\n"
        "    def __init__(self, path):\n"
        "        super().__init__(workers=4)\n"
        f"        {kept}\n"
        "    def __len__(self):\n"
        "        return 100\n"
        "    def __getitem__(self, index):\n"
        f"        return {read}, np.zeros(64)\n"
        f"{MODEL}model.fit(Rows('x.h5'))\n"
    )
    assert [found.location.line for found in named(analyse(text), RULE)] == ([line] if line else [])
