"""Real graphs of the installed TensorFlow: each op at the user's line, on the device a GPU would give it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.trace
ROOT = Path(__file__).resolve().parents[3]
SCRIPT = ROOT / "tests" / "trace" / "scripts" / "places_ops.py"


@pytest.fixture(scope="module")
def report() -> dict[str, Any]:
    pytest.importorskip("tensorflow")
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(ROOT)], capture_output=True, text=True, timeout=200, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def line_of(comment: str) -> int:
    lines = SCRIPT.read_text(encoding="utf-8").splitlines()
    return next(number for number, text in enumerate(lines, 1) if text.endswith("# " + comment))


def at(report: dict[str, Any], comment: str) -> dict[str, dict[str, Any]]:
    return {r["op"]: r for r in report["records"] if r["line"] == line_of(comment)}


@pytest.mark.parametrize("comment", ["in a layer", "built-in layer", "in a branch"])
def test_an_op_without_gpu_kernel_is_charged_to_the_line_that_asked_for_it(
    report: dict[str, Any], comment: str
) -> None:
    found = at(report, comment)["ResizeBicubic"]
    assert (found["device"], found["basis"], found["why"]) == ("cpu", "kernels", "no-kernel")
    assert (found["in_step"], found["jit"], found["count"]) == (True, False, 1)


@pytest.mark.parametrize("comment", ["in a layer", "built-in layer"])
def test_the_gradient_belongs_to_the_line_of_its_op(report: dict[str, Any], comment: str) -> None:
    assert at(report, comment)["ResizeBicubicGrad"]["device"] == "cpu"


def test_strings_python_and_explicit_devices_are_told_apart(report: dict[str, Any]) -> None:
    assert at(report, "strings")["AsString"]["why"] == "no-kernel"
    assert at(report, "Python")["PyFunc"]["why"] == "python"
    assert at(report, "asked")["BatchMatMulV2"]["why"] == "asked"


def test_a_loop_of_the_graph_is_one_record_with_its_gradient(report: dict[str, Any]) -> None:
    found = at(report, "a loop")["StatelessWhile"]
    assert found["count"] == 2
    assert found["body"] >= 1
    assert (found["device"], found["in_step"]) == (None, True)


@pytest.mark.parametrize("comment", ["first of two", "second of two"])
def test_layers_of_one_class_keep_their_own_lines(report: dict[str, Any], comment: str) -> None:
    found = at(report, comment)
    assert found["While"]["count"] == 1
    assert "MatMul" in found or "BatchMatMulV2" in found


def test_a_layer_of_a_functional_model_stands_where_it_is_called(report: dict[str, Any]) -> None:
    assert "ResizeBicubic" in at(report, "called here")


def test_ordinary_layers_run_on_the_gpu(report: dict[str, Any]) -> None:
    convolutions = [r for r in report["records"] if r["op"].startswith("Conv2D")]
    assert convolutions
    assert {r["device"] for r in convolutions} == {"gpu"}


def test_two_traces_of_a_function_count_once(report: dict[str, Any]) -> None:
    assert [r["count"] for r in report["records"] if r["op"] == "PyFunc"] == [1]


def test_shapes_input_functions_and_bookkeeping_are_left_out(report: dict[str, Any]) -> None:
    ops = {r["op"] for r in report["records"]}
    assert ops.isdisjoint({"Const", "Placeholder", "Shape", "If", "StatelessIf", "ReadVariableOp", "Prod"})
    assert [r["line"] for r in report["records"] if r["op"] == "AsString"] == [line_of("strings")]


def test_graphs_that_ran_say_where(report: dict[str, Any]) -> None:
    recorded = {(r["line"], r["op"]): r for r in report["ran"]}
    resize = recorded[line_of("in a branch"), "ResizeBicubic"]
    assert (resize["device"], resize["basis"], resize["why"]) == ("cpu", "ran", "no-kernel")
    product = recorded[line_of("asked"), "BatchMatMulV2"]
    assert (product["device"], product["basis"], product["why"]) == ("cpu", "ran", "asked")
    assert sum(r["basis"] == "ran" for r in report["ran"]) > len(report["ran"]) / 2
    assert {r["basis"] for r in report["records"] if r["body"] is None} == {"kernels"}


def test_a_compiled_function_is_marked(report: dict[str, Any]) -> None:
    (shuffle,) = (r for r in report["records"] if r["op"] == "RandomShuffle")
    assert (shuffle["jit"], shuffle["in_step"], shuffle["device"]) == (True, False, "cpu")


def test_keras_own_choice_of_xla_is_foreseen(report: dict[str, Any]) -> None:
    assert report["jits"] == [True, False, True]
    assert report["unwatched"] is None
