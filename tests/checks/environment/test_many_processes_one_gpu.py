from __future__ import annotations

import pytest

from tests.checks.conftest import Analyse, named
from tflint_gpu.findings import Severity

RULE = "many-processes-one-gpu"

HEAD = """\
import os
import multiprocessing as mp
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing.pool import ThreadPool
from joblib import Parallel, delayed
import numpy as np
import tensorflow as tf

def build(units):
    model = tf.keras.Sequential([tf.keras.Input([8]), tf.keras.layers.Dense(units), tf.keras.layers.Dense(1)])
    model.compile("adam", "mse")
    return model

def train(units):
    model = build(units)
    x = np.zeros([4096, 8])
    model.fit(x, x, epochs=30)
    return model.evaluate(x, x)

def through(units):
    return train(units)

def load(path):
    return np.load(path)

def predict(path):
    return build(8).predict(np.load(path))

def mine(gpu):
    os.environ["CUDA_VISIBLE_DEVICES"] = str(gpu)
    return train(8)

def visible(gpu):
    gpus = tf.config.list_physical_devices("GPU")
    tf.config.set_visible_devices(gpus[gpu], "GPU")
    return train(8)

def placed(gpu):
    with tf.device(f"/gpu:{gpu}"):
        return train(8)

def clustered(index):
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        return train(8)

"""

LAUNCHER = """\
for gpu in range(2):
    os.environ['CUDA_VISIBLE_DEVICES'] = str(gpu)
    mp.Process(target=train, args=(8,)).start()
"""

GROWTH = """\
for gpu in tf.config.list_physical_devices('GPU'):
    tf.config.experimental.set_memory_growth(gpu, True)
mp.Pool(4).map(train, [16, 32])
"""


def _told(analyse: Analyse, text: str) -> list[tuple[int, Severity]]:
    found = named(analyse(HEAD + text), RULE)
    first = HEAD.count("\n")
    return [(finding.location.line - first, finding.severity) for finding in found]


@pytest.mark.parametrize(
    "text",
    [
        "mp.Pool(4).map(train, [16, 32])\n",
        "mp.Pool().imap_unordered(train, [16, 32])\n",
        "mp.Pool(4).map(through, [16, 32])\n",
        "mp.get_context('spawn').Pool(4).map(train, [16, 32])\n",
        "ProcessPoolExecutor().map(train, [16, 32])\n",
        "[ProcessPoolExecutor(max_workers=2).submit(train, units) for units in [16, 32]]\n",
        "Parallel(n_jobs=-1)(delayed(train)(units) for units in [16, 32])\n",
        "for p in [mp.Process(target=train, args=(units,)) for units in [16, 32]]: p.start()\n",
        "mp.Process(target=train, args=(8,)).start(); mp.Process(target=train, args=(9,)).start()\n",
    ],
)
def test_processes_that_train_side_by_side(analyse: Analyse, text: str) -> None:
    told = _told(analyse, text)
    assert told
    assert set(told) == {(1, Severity.WARNING)}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("mp.Pool(4).map(load, ['a', 'b'])\n", "loads data"),
        ("mp.Pool(4).map(predict, ['a', 'b'])\n", "trains nothing"),
        ("mp.Pool(1).map(train, [16, 32])\n", "one process"),
        ("ThreadPool(4).map(train, [16, 32])\n", "threads"),
        ("ThreadPoolExecutor(4).map(train, [16, 32])\n", "threads"),
        ("Parallel(n_jobs=4, prefer='threads')(delayed(train)(u) for u in [16, 32])\n", "threads"),
        ("Parallel(n_jobs=1)(delayed(train)(u) for u in [16, 32])\n", "one process"),
        ("Parallel()(delayed(train)(u) for u in [16, 32])\n", "joblib starts one by default"),
        ("mp.Pool(2).map(mine, [0, 1])\n", "a GPU each"),
        ("mp.Pool(2).map(visible, [0, 1])\n", "a GPU each"),
        ("mp.Pool(2).map(placed, [0, 1])\n", "a GPU each"),
        ("mp.Pool(2).map(clustered, [0, 1])\n", "one training"),
        ("mp.Pool(2, initializer=load).map(train, [16, 32])\n", "may choose a GPU"),
        ("p = mp.Process(target=train, args=(8,))\np.start()\np.join()\n", "one process"),
        (
            "for u in [16, 32]:\n    p = mp.Process(target=train, args=(u,))\n    p.start()\n    p.join()\n",
            "one after the other",
        ),
        (
            LAUNCHER,
            "the launcher gives a GPU each",
        ),
        ("os.environ['CUDA_VISIBLE_DEVICES'] = ''\nmp.Pool(4).map(train, [16, 32])\n", "no GPU at all"),
    ],
)
def test_silent(analyse: Analyse, text: str, reason: str) -> None:
    assert _told(analyse, text) == [], reason


@pytest.mark.parametrize(
    "text",
    [
        "import sys\nmp.Pool(int(sys.argv[1])).map(train, [16, 32])\n",
        GROWTH,
    ],
    ids=["a number from outside", "memory growth: they fit and take turns"],
)
def test_quiet(analyse: Analyse, text: str) -> None:
    assert [severity for _, severity in _told(analyse, text)] == [Severity.INFO]


SEARCH = """\
import tensorflow as tf
from scikeras.wrappers import KerasClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score

def build(units=8):
    model = tf.keras.Sequential([tf.keras.Input([8]), tf.keras.layers.Dense(units), tf.keras.layers.Dense(1)])
    model.compile("adam", "mse")
    return model

model = KerasClassifier(build, epochs=10)
"""


@pytest.mark.parametrize(
    ("call", "severities"),
    [
        ("GridSearchCV(estimator=model, param_grid={}, n_jobs=-1)", [Severity.WARNING]),
        ("cross_val_score(model, [], [], n_jobs=4)", [Severity.WARNING]),
        ("GridSearchCV(model, {}, n_jobs=1)", []),
        ("GridSearchCV(model, {})", []),
        ("GridSearchCV(LogisticRegression(), {}, n_jobs=-1)", []),
    ],
)
def test_searches_that_fit_keras_models_in_processes(
    analyse: Analyse, call: str, severities: list[Severity]
) -> None:
    found = named(analyse(SEARCH + call + "\n"), RULE)
    assert [finding.severity for finding in found] == severities
    assert all(len(finding.message) < 200 for finding in found)
