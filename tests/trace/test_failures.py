from __future__ import annotations

from typing import Any

import pytest

from tflint_gpu.trace.failures import failed, refuse
from tflint_gpu.trace.launcher import Outcome

SPOT = {"path": "data.py", "line": 4, "cell": None, "function": "load"}


def sentence(report: dict[str, Any] | None, tail: tuple[str, ...] = (), status: int = 0, dump: str = "") -> str:
    return str(refuse("train.py", Outcome(report, tail, status, dump), 30.0))


@pytest.mark.parametrize(
    ("report", "words"),
    [
        (
            {"status": "crashed", "error": {"type": "KeyError", "text": "'label'\nmore", "spot": SPOT}},
            ("crashed before its first step at data.py:4 (in load)", "KeyError: 'label'"),
        ),
        ({"status": "deadline", "hung": SPOT}, ("no step within 30 s", "time ran out at data.py:4", "--deadline")),
        ({"status": "ended", "exit": 2}, ("left with status 2", "arguments")),
        ({"status": "ended", "exit": 0, "environment": {}}, ("never imported TensorFlow",)),
        (
            {"status": "ended", "exit": 0, "environment": {}, "processes": ["multiprocessing", "python3"]},
            ("started processes (multiprocessing, python3)", "does not follow", "trace what they run"),
        ),
        ({"status": "replaced", "program": "python3", "spot": SPOT}, ("python3 at data.py:4", "does not follow")),
        ({"status": "ended", "exit": 0, "environment": {"tensorflow": "2.21"}}, ("without a training step",)),
    ],
)
def test_every_end_has_its_sentence(report: dict[str, Any], words: tuple[str, ...]) -> None:
    text = sentence(report)
    assert "\n" not in text
    assert all(word in text for word in words)


def test_a_kill_names_the_signal_and_the_last_line() -> None:
    text = sentence(None, ("Fatal Python error: Segmentation fault", "", "I0000 00:00 noise"), status=-11)
    assert "SIGSEGV" in text
    assert "Segmentation fault" in text


def test_a_kill_by_the_kernel_speaks_of_memory() -> None:
    assert "memory runs out" in sentence(None, status=-9)


def test_a_full_disk_names_the_folder_to_make_room_in() -> None:
    text = sentence(None, ("OSError: [Errno 28] No space left on device", ""), status=1)
    assert "No space left on device" in text
    assert "TMPDIR" in text


def test_a_hang_outside_of_python_is_found_in_the_dump() -> None:
    dump = 'Timeout (0:00:35)!\nThread 0x1 (most recent call first):\n  File "/p/train.py", line 7 in wait\n'
    assert "/p/train.py:7 (in wait)" in sentence(None, dump=dump, status=1)


def test_the_last_line_says_which_argument_is_missing() -> None:
    text = sentence({"status": "ended", "exit": 2}, ("usage: train.py", "train.py: error: --data is required"))
    assert "--data is required" in text


#: As TensorFlow 2.21 words them, shortened.
IN_XLA = """Graph execution error:

Detected at node model/resize/ResizeBicubic defined at (most recent call last):
<stack traces unavailable>
Detected unsupported operations when trying to compile graph __inference_f_2[] on XLA_CPU_JIT: ResizeBicubic \
(No registered 'ResizeBicubic' OpKernel for XLA_CPU_JIT devices compatible with node {{node model/ResizeBicubic}})
The op is created at:
File "train.py", line 4, in <module>
"""
IN_GRAPH = """Graph execution error:

Detected at node gradients/MatMul defined at (most recent call last):
<stack traces unavailable>
Matrix size-incompatible: In[0]: [32,10], In[1]: [5,1]
\t [[{{node gradients/MatMul}}]] [Op:__inference_one_step_9]
"""
IN_TRACE = """in user code:

    File "train.py", line 49, in step  *
        return loss.numpy()

    AttributeError: 'SymbolicTensor' object has no attribute 'numpy'
"""


@pytest.mark.parametrize(
    ("change", "kind", "text", "said"),
    [
        ("xla", "InvalidArgumentError", IN_XLA, "does not compile: ResizeBicubic"),
        ("batch-x4", "ResourceExhaustedError", "OOM when allocating", "does not fit into memory"),
        (
            "batch-x2",
            "InvalidArgumentError",
            IN_GRAPH,
            "fails with InvalidArgumentError: Matrix size-incompatible: In[0]: [32,10], In[1]: [5,1]",
        ),
        ("xla", "ValueError", "", "fails with ValueError: "),
        (
            "tf-function",
            "AttributeError",
            IN_TRACE,
            "does not compile: AttributeError: 'SymbolicTensor' object has no attribute 'numpy'",
        ),
    ],
)
def test_a_change_that_fails_says_so_shortly(change: str, kind: str, text: str, said: str) -> None:
    assert failed(change, {"type": kind, "text": text}) == said


def test_a_crash_in_a_graph_is_told_by_its_cause() -> None:
    said = sentence(
        {"status": "crashed", "error": {"type": "InvalidArgumentError", "text": IN_GRAPH, "spot": SPOT}}
    )
    assert "InvalidArgumentError: Matrix size-incompatible" in said
