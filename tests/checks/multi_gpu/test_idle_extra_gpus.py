from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.checks.conftest import Analyse, evidence_of, finding_at, named
from tests.trace.profile.spaces import SHARED, needs_profiles
from tflint_gpu.checks.check import Check
from tflint_gpu.findings import Severity, Verdict
from tflint_gpu.trace.evidence import Evidence
from tflint_gpu.trace.importer import import_profile
from tflint_gpu.trace.usage import GpuUse

Rule = Callable[[str], Check]
RULE = "idle-extra-gpus"

TRAIN = """\
x, y = tf.zeros([4096, 8]), tf.zeros([4096, 1])
with tf.device({device!r}):
    model = tf.keras.Sequential([tf.keras.Input([8]), tf.keras.layers.Dense(2048), tf.keras.layers.Dense(1)])
    model.compile("adam", "mse")
    model.fit(x, y, batch_size=256)
"""


def script(mask: object = None, device: str | None = None, between: str = "") -> str:
    """A training behind `mask`, in a block of `device`, with `between` before it."""
    head = "import os\n" + (f"os.environ['CUDA_VISIBLE_DEVICES'] = {mask!r}\n" if mask is not None else "")
    block = TRAIN.format(device=device)
    if device is None:
        block = block.replace("with tf.device(None):\n", "").replace("    ", "")
    return f"{head}import tensorflow as tf\n{between}{block}"


def _told(analyse: Analyse, text: str) -> list[str]:
    found = named(analyse(text), RULE)
    assert all(finding.severity is Severity.INFO and len(finding.message) < 200 for finding in found)
    return [finding.message for finding in found]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (script("0,1"), "2 GPUs are made visible"),
        (script("0,1,2,3", "/GPU:0"), "4 GPUs are made visible"),
        (script("1"), "only GPU 1 is visible"),
        (script("1", "/gpu:1"), "GPU 1 does not exist"),
        (script(None, "/device:GPU:1"), "pins training to GPU 1"),
        (
            script(
                "0,1",
                "/gpu:1",
                "gpus = tf.config.list_physical_devices('GPU')\ntf.config.set_visible_devices(gpus[1], 'GPU')\n",
            ),
            "GPU 1 does not exist",
        ),
    ],
    ids=["two of which one", "four of which one", "a number that may lack", "behind a mask", "no mask", "chosen"],
)
def test_what_the_code_says_of_its_gpus(analyse: Analyse, text: str, words: str) -> None:
    told = _told(analyse, text)
    assert len(told) == 1
    assert words in told[0]


STRATEGY = "strategy = tf.distribute.MirroredStrategy()\n"
TWO = """\
with tf.device("/gpu:1"):
    second = tf.keras.Sequential([tf.keras.Input([8]), tf.keras.layers.Dense(1)])
    second.compile("adam", "mse")
    second.fit(tf.zeros([4096, 8]), tf.zeros([4096, 1]))
"""
ARGUMENT = "import sys\nos.environ['CUDA_VISIBLE_DEVICES'] = sys.argv[1]\n"
OPTION = """\
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--gpu", default="0,1")
os.environ["CUDA_VISIBLE_DEVICES"] = parser.parse_args().gpu
"""
PROCESSES = "import multiprocessing\nmultiprocessing.Process(target=print).start()\n"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (script("0"), "the first GPU"),
        (script("0", "/gpu:0"), "the first GPU"),
        (script(None, "/gpu:0"), "the first GPU"),
        (script(None, "/cpu:0"), "another rule's"),
        (script("-1"), "another rule's"),
        (script("GPU-8932f937"), "an id"),
        (script("0,1", None, STRATEGY), "a strategy"),
        (script("0,1", None, "import horovod.tensorflow as hvd\n"), "Horovod"),
        (script("0,1", None, PROCESSES), "processes of its own"),
        (script("0,1", "/gpu:0", TWO), "a model on each"),
        (script(None, None, ARGUMENT), "from outside"),
        (script(None, None, OPTION), "from outside"),
        ("import os\nos.environ['CUDA_VISIBLE_DEVICES'] = '0,1'\nimport tensorflow as tf\n", "trains nothing"),
    ],
)
def test_silent(analyse: Analyse, text: str, reason: str) -> None:
    assert _told(analyse, text) == [], reason


def _evidence(*busy: float, **parts: object) -> Evidence:
    """Steps of 10 ms; `busy` is the share of each GPU, 0 for one without kernels."""
    gpus = tuple(
        GpuUse(f"GPU:{number}", True, share, 10 * share, 0.0, 20) if share else GpuUse(f"GPU:{number}", False)
        for number, share in enumerate(busy)
    )
    buckets = {"device_compute": 10 * max(busy), "host": 10 - 10 * max(busy)}
    return evidence_of(gpu=True, buckets=buckets, gpus=gpus, **parts)


def test_a_well_used_gpu_beside_idle_ones(rule: Rule) -> None:
    (finding,) = rule(RULE).observe(_evidence(0.9, 0.0, 0.0))
    assert "GPU:0 is busy for 90% of the step and 2 more GPUs did nothing" in finding.message
    assert (finding.severity, finding.verdict) == (Severity.INFO, Verdict.OBSERVED)


@pytest.mark.parametrize(
    "evidence",
    [
        _evidence(0.5, 0.0),
        _evidence(0.9),
        _evidence(0.9, 0.8, 0.0),
        _evidence(0.9, 0.0, facts={"visible_gpus": 1}),
        _evidence(0.9, 0.0, facts={"replicas": 2}),
        evidence_of(),
    ],
    ids=["room on the first", "one GPU", "several compute", "one made visible", "a strategy", "no GPU"],
)
def test_nothing_is_observed(rule: Rule, evidence: Evidence) -> None:
    assert list(rule(RULE).observe(evidence)) == []


@needs_profiles
def test_replicas_of_which_the_profile_shows_two_are_not_idle(rule: Rule) -> None:
    assert list(rule(RULE).observe(import_profile(SHARED / "v100x8-bert").evidence)) == []


@pytest.mark.parametrize(
    ("evidence", "gpus", "verdict"),
    [
        (_evidence(0.9, 0.0), 2, Verdict.CONFIRMED),
        (_evidence(0.9, 0.9), 2, Verdict.REFUTED),
        (_evidence(0.9), 2, None),
        (_evidence(0.9), None, Verdict.REFUTED),
        (evidence_of(), 2, None),
        (evidence_of(), None, None),
    ],
    ids=["one of two", "both", "a machine with one", "the named GPU is there", "a CPU", "a CPU too"],
)
def test_the_gpus_that_ran_kernels_decide(
    rule: Rule, evidence: Evidence, gpus: int | None, verdict: Verdict | None
) -> None:
    check = rule(RULE)
    finding = finding_at(check, 2, **({"gpus": gpus} if gpus else {}))
    judgement = check.judge(finding, evidence)
    assert (judgement.verdict if judgement else None) is verdict


def test_gpus_that_were_not_traced_are_unknown(rule: Rule) -> None:
    check, evidence = rule(RULE), _evidence(0.9, 0.0)
    device = replace(evidence.environment.device, traced=False)
    hidden = replace(evidence, environment=replace(evidence.environment, device=device))
    assert check.judge(finding_at(check, 2, gpus=2), hidden) is None
