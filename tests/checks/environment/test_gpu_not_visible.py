from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.checks.conftest import Analyse, evidence_of, finding_at, line_of, named
from tests.checks.snippets import FIT, SETUP
from tflint_gpu.checks.check import Check
from tflint_gpu.findings import Severity, Verdict
from tflint_gpu.trace.evidence import Evidence, Samples

RULE = "gpu-not-visible"


def masked(value: str) -> str:
    return f"import os\nos.environ['CUDA_VISIBLE_DEVICES'] = {value}\n" + SETUP + FIT


@pytest.mark.parametrize("value", ["''", "'-1'", "'cuda:0'", "'/gpu:0'", "'None'", "'-1,0'", "str(-1)"])
def test_masks_that_leave_no_gpu(analyse: Analyse, value: str) -> None:
    text = masked(value)
    (finding,) = named(analyse(text), RULE)

    assert finding.severity is Severity.ERROR
    assert finding.location.line == line_of(text, "os.environ")


@pytest.mark.parametrize(
    "value", ["'0'", "'0,-1'", "'2,3'", "'GPU-5a7c1b2d'", "'MIG-GPU-5a7c/1/0'", "unheard_of()"]
)
def test_silent_for_masks_that_leave_one(analyse: Analyse, value: str) -> None:
    assert named(analyse(masked(value)), RULE) == []


def test_mask_in_a_module_that_training_imports(analyse: Analyse) -> None:
    config = "import os\nos.environ['CUDA_VISIBLE_DEVICES'] = '-1'\n"
    found = named(analyse({"config.py": config, "train.py": "import config\n" + SETUP + FIT}), RULE)
    assert [finding.location.path for finding in found] == ["config.py"]


@pytest.mark.parametrize(
    "worker",
    [
        (
            "def worker(task):\n    os.environ['CUDA_VISIBLE_DEVICES'] = '-1'\n    return task\n"
            "multiprocessing.Process(target=worker, args=(1,)).start()\n"
        ),
        (
            "def worker(task):\n    tf.config.set_visible_devices([], 'GPU')\n"
            "multiprocessing.Pool(4, initializer=worker)\n"
        ),
    ],
)
def test_silent_for_helper_processes(analyse: Analyse, worker: str) -> None:
    assert named(analyse("import multiprocessing, os\n" + SETUP + worker + FIT), RULE) == []


def test_silent_for_a_script_that_trains_nothing(analyse: Analyse) -> None:
    text = SETUP + "tf.config.set_visible_devices([], 'GPU')\nmodel.predict(tf.zeros([4096, 8]))\n"
    assert named(analyse(text), RULE) == []


def test_session_options_of_old(analyse: Analyse) -> None:
    text = SETUP + "config = tf.compat.v1.ConfigProto(device_count={'GPU': 0})\n" + FIT
    assert [finding.severity for finding in named(analyse(text), RULE)] == [Severity.ERROR]


@pytest.mark.parametrize(
    ("path", "lines", "count"),
    [
        ("requirements.txt", "tensorflow-cpu==2.15.0\n", 1),
        ("requirements.txt", "tensorflow-gpu>=2.4\n", 1),
        ("requirements.txt", "tensorflow-gpu==2.10.0\n", 0),
        ("requirements.txt", "tensorflow-gpu<2.12\n", 0),
        ("requirements.txt", "tensorflow-cpu; sys_platform == 'darwin'\n", 0),
        ("requirements.txt", "tensorflow[and-cuda]==2.15.0\n", 0),
        ("requirements-cpu.txt", "tensorflow-cpu\n", 0),
        ("docs/requirements.txt", "tensorflow-cpu\n", 0),
    ],
)
def test_packages(analyse: Analyse, path: str, lines: str, count: int) -> None:
    assert len(named(analyse({path: lines, "train.py": SETUP + FIT}), RULE)) == count


def test_silent_where_another_file_is_for_gpus(analyse: Analyse) -> None:
    files = {"requirements.txt": "tensorflow-cpu>=2.16\n", "requirements-cuda.txt": "tensorflow[and-cuda]>=2.16\n"}
    assert named(analyse({**files, "train.py": SETUP + FIT}), RULE) == []


SEEN = Samples(count=9, memory_total_bytes=1 << 35)


def _built(cuda: bool | None, samples: Samples | None = None) -> Evidence:
    evidence = evidence_of(samples=samples)
    return replace(evidence, environment=replace(evidence.environment, cuda_build=cuda))


@pytest.mark.parametrize(
    ("evidence", "verdict"),
    [
        (evidence_of(gpu=True, buckets={"device_compute": 5.0}), Verdict.REFUTED),
        (_built(cuda=False), Verdict.CONFIRMED),
        (_built(True, SEEN), Verdict.CONFIRMED),
        (_built(True, Samples(note="no NVIDIA driver")), None),
    ],
    ids=["ran on a GPU", "CPU build", "driver sees a GPU", "machine without one"],
)
def test_judged(rule: Callable[[str], Check], evidence: Evidence, verdict: Verdict | None) -> None:
    check = rule(RULE)
    judged = check.judge(finding_at(check, 3), evidence)
    assert (judged.verdict if judged else None) is verdict


def test_observed_where_the_driver_sees_a_gpu_that_training_did_not_use(rule: Callable[[str], Check]) -> None:
    (finding,) = rule(RULE).observe(_built(True, SEEN))

    assert finding.verdict is Verdict.OBSERVED
    assert finding.location.path == "train.py"
    assert list(rule(RULE).observe(_built(True))) == []
    assert list(rule(RULE).observe(evidence_of(gpu=True, buckets={"device_compute": 5.0}, samples=SEEN))) == []
