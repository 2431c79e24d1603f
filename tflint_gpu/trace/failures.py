"""Runs that showed no step: one sentence each, with the place and the remedy."""

from __future__ import annotations

import re
import signal
import tempfile
import textwrap
from typing import Any

from tflint_gpu.errors import UserError
from tflint_gpu.trace.launcher import Outcome

_DUMPED = re.compile(r'File "([^"]+)", line (\d+) in (\S+)')
_NOISE = re.compile(r"^([IWEF]\d{4} |WARNING: All log|To enable the following|\d{4}-\d\d-\d\d )|^\s*$")

#: Lines of TensorFlow's errors that say nothing of the cause: where in the graph, what the call was given.
_AROUND = re.compile(
    r"^(Graph execution error|Detected at node|<stack traces|File \"|Traceback|Exception encountered when calling|"
    r"Arguments received by|\[\[|\{\{|\d+ root error|\(\d+\) \w+: *$|Call arguments|Stack trace|• )"
)
#: How errors begin that came up while a function was traced.
_TRACED = "in user code:"
_FULL = re.compile(r"No space left on device|Disk quota exceeded|File too large")
_MEMORY = "the kernel does this where memory runs out: give it smaller data or a smaller model"
_NOT_IN_XLA = re.compile(r"No registered '(\w+)' OpKernel for XLA")


def refuse(name: str, outcome: Outcome, deadline: float) -> UserError:
    """Return the error to raise for a run of `name` that gave no step."""
    report = outcome.report
    if report is None:
        return UserError(f"{name}: {_lost(outcome, deadline)}")
    status = report.get("status")
    if status == "crashed":
        error = report["error"]
        remedy = "it must run by itself before it can be traced"
        if "attempted relative import with no known parent package" in error["text"]:
            remedy = "trace it as a module: -m and its dotted name, from the folder that holds the package"
        return UserError(
            f"{name}: crashed before its first step{at(error.get('spot'))}: "
            f"{error['type']}: {_short(error['text'])}; {remedy}"
        )
    if status == "deadline":
        return UserError(
            f"{name}: no step within {deadline:g} s; time ran out{at(report.get('hung'))}; "
            f"give it smaller data, or more time with --deadline"
        )
    if status == "broken":
        return UserError(f"{name}: the probe failed in it: {_short(report['error']['text'])}; please report it")
    if report.get("exit"):
        return UserError(
            f"{name}: left with status {report['exit']} before its first step{_last(outcome)}; "
            f"put the script's own arguments after its name"
        )
    if status == "replaced":
        return UserError(
            f"{name}: makes way for another program, {report['program']}{at(report.get('spot'))}, which a trace "
            f"does not follow; trace that one, or set beforehand what it is started again for"
        )
    if started := ", ".join(report.get("processes") or ()):
        return UserError(
            f"{name}: ended without a training step of its own, and started processes ({started}), "
            f"which a trace does not follow; trace what they run, or call it without a process of its own"
        )
    if "tensorflow" not in report["environment"]:
        return UserError(f"{name}: ended and never imported TensorFlow; name the script that trains")
    return UserError(
        f"{name}: ended without a training step: no fit, no train_on_batch, no loop with a gradient tape or an "
        f"optimizer; name the script that trains, with the arguments that make it train"
    )


def _lost(outcome: Outcome, deadline: float) -> str:
    where = _DUMPED.search(outcome.dump)
    if where is not None:
        return (
            f"no step within {deadline:g} s; it hung at {where[1]}:{where[2]} (in {where[3]}), outside of Python; "
            f"give it smaller data, or more time with --deadline"
        )
    if outcome.status < 0:
        try:
            kind = signal.Signals(-outcome.status).name
        except ValueError:
            kind = f"signal {-outcome.status}"
        remedy = _MEMORY if kind == "SIGKILL" else "it must run by itself first"
        return f"was killed by {kind} before a window of steps was full{_last(outcome)}; {remedy}"
    if full := next((line for line in reversed(outcome.tail) if _FULL.search(line)), None):
        folder = tempfile.gettempdir()
        return f"its run could not be written down ({_short(full)}); make room in {folder}, or set TMPDIR"
    return f"ended with status {outcome.status} and left no report{_last(outcome)}; it must run by itself first"


def after_steps(error: dict[str, Any]) -> str:
    """Say in a sentence that a script that did train failed later on."""
    return (
        f"The script failed after its steps{at(error.get('spot'))}: {error['type']}: {_short(error['text'])} "
        f"(what it saves is not there in a trace)."
    )


def at(spot: dict[str, Any] | None) -> str:
    """Return `` at path:line (in function)`` for a raw spot, "" for none."""
    if spot is None:
        return ""
    cell = f":cell {spot['cell']}" if spot.get("cell") else ""
    inside = f" (in {spot['function']})" if spot.get("function") else ""
    return f" at {spot['path']}{cell}:{spot['line']}{inside}"


def _last(outcome: Outcome) -> str:
    """Return the last line of output that is the script's own, in brackets."""
    lines = [line for line in outcome.tail if not _NOISE.match(line)]
    return f" (its last line: {_short(lines[-1])})" if lines else ""


def failed(change: str, error: dict[str, Any]) -> str:
    """Say in a few words how a run with `change` failed; `error` is the record of the exception."""
    outside = dict.fromkeys(_NOT_IN_XLA.findall(error["text"]))
    if change == "xla" and outside:
        return f"does not compile: {', '.join(outside)}"
    if error["type"] == "ResourceExhaustedError":
        return "does not fit into memory"
    if change == "tf-function":
        return f"does not compile: {_short(error['text'])}"
    return f"fails with {error['type']}: {_short(error['text'])}"


def _short(text: str) -> str:
    """Return the line of an error's text that tells most, cut at a word."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if lines[:1] == [_TRACED]:
        # The stack comes first, the error itself last.
        lines = lines[-1:]
    line = next((line for line in lines if not _AROUND.match(line)), lines[0] if lines else "")
    return textwrap.shorten(line, 120, placeholder=" …")
