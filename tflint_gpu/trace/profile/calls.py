"""Finds the steps of a host that marks none: the calls of the ``tf.function`` that trains."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence

from tflint_gpu.trace.profile.host import CallEvent, HostTrace, Marker
from tflint_gpu.trace.profile.intervals import length, merge
from tflint_gpu.trace.profile.names import op_type

#: Fewer calls than this are no rhythm.
FEW = 3

#: Names of functions that train: Keras' own, and what people call theirs.
_TRAINS = re.compile(r"(^|_)(train|training|one_step|multi_step)(_|$)")
#: Keras' functions that use a model without changing it.
_USES = re.compile(r"(^|_)(test|predict|eval|evaluate|validate|validation|val)(_|$)")
#: What only a step that learns runs: gradients by a tape, and the ops of optimizers.
_LEARNS = re.compile(r"(^|/)gradient_tape/|^(gradients?)/")
_APPLIES = re.compile(r"^Resource(Sparse)?Apply")


def called_steps(host: HostTrace) -> tuple[str, list[Marker]]:
    """Return the name of the function whose calls are the steps of `host`, and these calls as markers.

    It is the function that takes most of the time of all functions, trains by its name or by the ops inside, and
    was called `FEW` times or more from one thread. ``("", [])`` where there is none.
    """
    by_name: dict[tuple[str, int], list[CallEvent]] = defaultdict(list)
    for call in host.functions:
        by_name[call.name, call.thread].append(call)
    if not by_name:
        return "", []
    spent = {key: length(merge((call.start, call.end) for call in calls)) for key, calls in by_name.items()}
    name, thread = max(spent, key=lambda key: spent[key])
    calls = sorted(by_name[name, thread], key=lambda call: call.start)
    whole = length(merge((call.start, call.end) for call in host.functions))
    if len(calls) < FEW or spent[name, thread] * 2 < whole or not _trains(name, calls, host):
        return "", []
    return name, [Marker(call.start, call.end, number, thread) for number, call in enumerate(calls)]


def _trains(name: str, calls: Sequence[CallEvent], host: HostTrace) -> bool:
    if _USES.search(name):
        return False
    if _TRAINS.search(name):
        return True
    starts = [call.start for call in calls]
    for op in host.ops:
        at = bisect_right(starts, op.start) - 1
        if at >= 0 and op.start < calls[at].end and _learns(op.name):
            return True
    return False


def _learns(op: str) -> bool:
    return bool(_LEARNS.search(op) or _APPLIES.match(op_type(op) or ""))
