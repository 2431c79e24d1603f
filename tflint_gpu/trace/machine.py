"""Asks a machine and an interpreter whether TensorFlow can see a GPU, and finds the reason where it cannot."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tflint_gpu.errors import UserError
from tflint_gpu.trace.nvml import Nvml, open_nvml

#: What the interpreter is asked; the last line of its output is the answer. TensorFlow logs to stderr.
_QUESTION = r"""
import json, os, sys, platform
answer = {"python": platform.python_version(), "packages": {}, "tensorflow": None, "problem": None}
from importlib import metadata
for dist in metadata.distributions():
    name = (dist.metadata["Name"] or "").lower()
    if name.startswith(("tensorflow", "tf-nightly", "tf_nightly", "nvidia-")):
        answer["packages"][name] = dist.version
try:
    import tensorflow as tf
    answer["tensorflow"] = tf.__version__
    answer["build"] = {key: str(value) for key, value in tf.sysconfig.get_build_info().items()}
    answer["cuda_build"] = tf.test.is_built_with_cuda()
    answer["rocm_build"] = tf.test.is_built_with_rocm()
    answer["gpus"] = []
    for gpu in tf.config.list_physical_devices("GPU"):
        details = tf.config.experimental.get_device_details(gpu)
        capability = details.get("compute_capability")
        answer["gpus"].append({"name": details.get("device_name") or gpu.name,
                               "capability": ".".join(map(str, capability)) if capability else None})
except ImportError as problem:
    answer["problem"] = str(problem)
sys.stdout.write("\n" + json.dumps(answer) + "\n")
sys.stdout.flush()
os._exit(0)
"""

_MISSING_LIBRARY = re.compile(r"Could not load dynamic library '([^']+)'|dlerror: ([\w.+-]+\.so[\w.]*):")
_LOG_LINES = re.compile(
    r"cuda drivers|Cannot dlopen|Could not load dynamic|CUDA_ERROR|cuInit|Skipping registering",
    re.I,
)


@dataclass(frozen=True)
class Facts:
    """What was found out. `driver` and `cards` are NVML's; `no_driver` says in a sentence why there is none."""

    python: str
    system: str
    interpreter: str | None = None
    packages: Mapping[str, str] = field(default_factory=dict)
    tensorflow: str | None = None
    problem: str | None = None
    cuda_build: bool = False
    rocm_build: bool = False
    build: Mapping[str, str] = field(default_factory=dict)
    gpus: tuple[str, ...] = ()
    visible: str | None = None
    driver: str | None = None
    cards: tuple[tuple[str, str | None], ...] = ()
    no_driver: str = ""
    log: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


def examine(python: str, timeout: float = 120.0) -> Facts:
    """Ask `python` what its TensorFlow sees, and NVML what the machine has.

    Raises `UserError` where the interpreter cannot be asked: it does not start, hangs, or dies.
    """
    answer, log = _ask(python, timeout)
    driver, cards, why = _driver()
    return Facts(
        python=python,
        system=_system(),
        interpreter=answer["python"],
        packages=answer["packages"],
        tensorflow=answer["tensorflow"],
        problem=answer["problem"],
        cuda_build=bool(answer.get("cuda_build")),
        rocm_build=bool(answer.get("rocm_build")),
        build=answer.get("build", {}),
        gpus=tuple(_named(gpu) for gpu in answer.get("gpus", ())),
        visible=os.environ.get("CUDA_VISIBLE_DEVICES"),
        driver=driver,
        cards=cards,
        no_driver=why,
        log=tuple(dict.fromkeys(line.strip() for line in log.splitlines() if _LOG_LINES.search(line))),
        missing=tuple(dict.fromkeys(one or two for one, two in _MISSING_LIBRARY.findall(log))),
    )


#: How many characters of a strange interpreter's last line are quoted.
_QUOTED = 200


def _ask(python: str, timeout: float) -> tuple[dict[str, Any], str]:
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "0"}
    try:
        done = subprocess.run(
            [python, "-c", _QUESTION],
            capture_output=True,
            text=True,
            timeout=timeout,
            env=environment,
            errors="replace",
        )
    except OSError as problem:
        raise UserError(
            f"{python}: cannot be started ({problem.strerror}); name an interpreter with --python"
        ) from None
    except subprocess.TimeoutExpired:
        raise UserError(f"{python}: no answer within {timeout:.0f} s; `import tensorflow` hangs there") from None
    try:
        answer: dict[str, Any] = json.loads(done.stdout.strip().rpartition("\n")[2])
    except ValueError:
        # What is no Python may say anything, the question itself among it.
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        last = last if len(last) <= _QUOTED else f"{last[:_QUOTED]}…"
        raise UserError(f"{python}: could not be asked (exit status {done.returncode}): {last}") from None
    return answer, done.stderr


def _driver() -> tuple[str | None, tuple[tuple[str, str | None], ...], str]:
    with open_nvml() as nvml:
        if isinstance(nvml, Nvml):
            return nvml.driver, tuple((gpu.name, gpu.compute_capability) for gpu in nvml.gpus()), ""
        return None, (), nvml.removeprefix("No GPU counters: ").rstrip(".")


def _named(gpu: dict[str, Any]) -> str:
    return f"{gpu['name']} (compute capability {gpu['capability']})" if gpu["capability"] else str(gpu["name"])


def _system() -> str:
    """Return ``linux``, ``wsl``, ``windows`` or ``macos``."""
    if sys.platform.startswith("win"):
        return "windows"
    if sys.platform == "darwin":
        return "macos"
    return "wsl" if "microsoft" in os.uname().release.lower() else "linux"


@dataclass(frozen=True)
class Verdict:
    """The answer: a sentence with the remedy, and the exit status: 0 sees a GPU, 1 does not, 2 unknown."""

    sentence: str
    status: int


def judge(facts: Facts) -> Verdict:
    """Say whether TensorFlow sees a GPU; if not, give the first reason in the order in which to mend them."""
    if facts.tensorflow is None:
        why = facts.problem or "No module named 'tensorflow'"
        return Verdict(
            f"TensorFlow cannot be imported by {facts.python} ({why}): install it, or give --python.", 2
        )
    if facts.gpus:
        listed = ", ".join(facts.gpus)
        return Verdict(f"TensorFlow {facts.tensorflow} sees {len(facts.gpus)} GPU: {listed}.", 0)
    reasons = (_hidden, _wrong_system, _wrong_package, _no_driver, _no_libraries)
    found = next((sentence for reason in reasons if (sentence := reason(facts))), None)
    return Verdict(found or "TensorFlow sees no GPU, and its log gives no reason: check driver and log.", 1)


def _hidden(facts: Facts) -> str | None:
    if facts.visible is None or (facts.visible.strip() not in ("", "-1") and facts.cards):
        return None
    if facts.visible.strip() in ("", "-1", "NoDevFiles"):
        return f"CUDA_VISIBLE_DEVICES={facts.visible!r} hides every GPU from TensorFlow: unset it."
    return None


def _wrong_system(facts: Facts) -> str | None:
    version = _version(facts.tensorflow)
    if facts.system == "macos" and "tensorflow-metal" not in facts.packages:
        return "TensorFlow uses the GPU of a Mac through a plug-in only: pip install tensorflow-metal."
    if facts.system == "windows" and version >= (2, 11):
        return f"TensorFlow {facts.tensorflow} has no GPU support on Windows (2.10 was the last): use WSL2."
    return None


def _wrong_package(facts: Facts) -> str | None:
    cpu_only = next((name for name in facts.packages if name.replace("_", "-") in _CPU_PACKAGES), None)
    if cpu_only and not facts.cuda_build:
        return f"The package {cpu_only} is built without GPU support: pip install 'tensorflow[and-cuda]' instead."
    if not facts.cuda_build and not facts.rocm_build:
        return "This TensorFlow is built without GPU support: pip install 'tensorflow[and-cuda]' on Linux or WSL2."
    return None


_CPU_PACKAGES = {"tensorflow-cpu", "tensorflow-cpu-aws", "tf-nightly-cpu", "tensorflow-intel"}


def _no_driver(facts: Facts) -> str | None:
    if facts.rocm_build or facts.cards:
        return None
    if facts.driver is not None:
        return (
            f"NVIDIA driver {facts.driver} is loaded but lists no GPU: check the card, or the container's --gpus."
        )
    where = "In WSL2 the Windows driver serves: update it there." if facts.system == "wsl" else _DRIVER
    return f"No GPU can be used: {facts.no_driver}. {where}"


_DRIVER = "Install the driver, or start the container with --gpus all, where the machine has a GPU."


def _no_libraries(facts: Facts) -> str | None:
    log = " ".join(facts.log)
    if facts.missing or "Cannot dlopen" in log:
        named = f" ({', '.join(facts.missing)})" if facts.missing else ""
        cuda = facts.build.get("cuda_version")
        wanted = f", built for CUDA {cuda}," if cuda else ""
        return (
            f"TensorFlow {facts.tensorflow}{wanted} does not find its CUDA libraries{named}: "
            "pip install 'tensorflow[and-cuda]' in this environment."
        )
    if "CUDA_ERROR" in log or "cuInit" in log:
        line = next(line for line in facts.log if "CUDA_ERROR" in line or "cuInit" in line)
        return f"The driver refuses to start CUDA: {line.rpartition('] ')[2][:120]}"
    return None


def _version(text: str | None) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text or "")[:2])
