"""From the probe's records of ops to placements: reasons in words, predictions from the shipped table, times."""

from __future__ import annotations

import collections
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tflint_gpu.program.kernels import kernel_table, release_of
from tflint_gpu.trace.evidence import GraphLoop, Placement, Spot

if TYPE_CHECKING:
    from tflint_gpu.program.kernels import KernelTable
    from tflint_gpu.trace.profile.ops import OpTime
    from tflint_gpu.trace.profile.summary import ProfileSummary

_REASONS = {
    "no-kernel": "no GPU kernel for {op}",
    "dtype": "no GPU kernel of {op} for {dtypes}",
    "host-memory": "the GPU kernel of {op} for {dtypes} works in host memory",
    "asked": "tf.device puts {op} on the CPU",
    "python": "{op} runs Python code",
    "ran": "{op} ran on the CPU",
}


def placements(
    records: Iterable[dict[str, Any]],
    profile: ProfileSummary | None = None,
    *,
    keras_auto_jit: bool = False,
    tensorflow: str | None = None,
) -> tuple[Placement, ...]:
    """Return the placements of the probe's `records` (see ``probe/placement.py``; ``spot`` is a raw spot or None).

    Records without a device come from a TensorFlow without CUDA: the shipped table for its version (`tensorflow`,
    None: the newest) predicts for them and the reason says so. `keras_auto_jit` says that Keras 3 would compile
    the step with XLA on a GPU, where an op that XLA does not know ends the run. Times are taken from `profile` by
    node name.
    """
    times = _Times((*profile.host_ops, *profile.device_ops, *profile.python_ops) if profile else ())
    table = kernel_table(release_of(tensorflow))
    found = [_placement(record, times, keras_auto_jit, table) for record in records if record["body"] is None]
    return tuple(sorted(found, key=_order))


def graph_loops(records: Iterable[dict[str, Any]], profile: ProfileSummary | None = None) -> tuple[GraphLoop, ...]:
    """Return the loops among the probe's `records`, with the rounds and the time that `profile` saw of each.

    A loop and its gradient are one: their times add up, and the rounds are those of the longer one.
    """
    times = profile.loops if profile else ()
    loops = [record for record in records if record["body"] is not None]
    scopes = collections.Counter(_scope(name) for record in loops for name in record["names"])
    found = []
    for record in loops:
        seen = [time for time in times if any(_ends_with(time.scope, name) for name in record["names"])]
        if not seen:
            alone = [scope for scope in map(_scope, record["names"]) if scopes[scope] == 1]
            seen = [time for time in times if any(_ends_with(time.scope, scope) for scope in alone)]
        rounds = [time.rounds for time in seen if time.rounds is not None]
        found.append(
            GraphLoop(
                spot=_spot(record),
                body_ops=record["body"],
                rounds=max(rounds, default=None),
                ms=sum(time.ms for time in seen) if seen else None,
                in_step=record["in_step"],
                jit=record["jit"],
            )
        )
    return tuple(found)


def _scope(name: str) -> str:
    """Return the scope that the node `name` stands in, ``""`` at the top."""
    return name[: name.rfind("/") + 1]


def _ends_with(scope: str, name: str) -> bool:
    """Say whether the node `name` is the one at `scope`, which may have been inlined into another function."""
    return bool(name) and (scope == name or scope.endswith("/" + name))


def _order(placement: Placement) -> tuple[Any, ...]:
    """Work that leaves the GPU first, then by line."""
    spot = placement.spot
    return (placement.device != "cpu", spot is None, (spot.path, spot.line) if spot else ("", 0), placement.op)


def _placement(record: dict[str, Any], times: _Times, keras_auto_jit: bool, table: KernelTable) -> Placement:
    device, why, basis = record["device"], record["why"], ""
    predicted = record["basis"] != "ran"
    if record["basis"] == "none" and why not in ("python", "asked"):
        device, why = table.place(record["op"], record["types"])
        basis = f" (by the kernels of TensorFlow {table.version})" if device == "cpu" else ""
    if not predicted and device == "cpu":
        why = why or "ran"
    reason = _REASONS.get(why, "").format(op=record["op"], dtypes=", ".join(record["types"].values()))
    jit = record["jit"]
    if predicted and (jit or (keras_auto_jit and record["in_step"])) and why != "host-memory":
        device, reason = _compiled(record, jit, device, reason, table)
    return Placement(
        op=record["op"],
        count=record["count"],
        device=device or "unknown",
        predicted=predicted,
        spot=_spot(record),
        ms=times.of(record),
        dtypes=tuple(record["dtypes"]),
        function=record["function"],
        reason=reason + basis if reason else "",
        in_step=record["in_step"],
        jit=jit,
        bytes=record["bytes"],
    )


def _compiled(
    record: dict[str, Any], jit: bool, device: str | None, reason: str, table: KernelTable
) -> tuple[str | None, str]:
    """Return device and reason of an op that XLA has to compile, or the run fails.

    Only what has no GPU kernel either is called a failure: XLA takes some ops by another way than a kernel.
    """
    op = record["op"]
    compiles = record["compiles"] if record["compiles"] is not None else op in table.xla
    if compiles:
        return "gpu", ""
    if device != "cpu":
        return device, reason
    by = "XLA" if jit else "XLA, which Keras 3 uses on a GPU"
    return "cpu", f"{op} cannot be compiled by {by}: this will fail"


def _spot(record: dict[str, Any]) -> Spot | None:
    raw = record.get("spot")
    return Spot(raw["path"], raw["line"], raw.get("cell"), raw.get("function", "")) if raw else None


class _Times:
    """Host and device times of a profile by op, found again by node name.

    A node keeps the end of its name when its function is inlined into another: ``while/body/resize/Resize``.
    """

    def __init__(self, ops: Iterable[OpTime]) -> None:
        self._by_end: dict[tuple[str, str], list[OpTime]] = collections.defaultdict(list)
        for op in ops:
            if not op.in_input:
                self._by_end[op.op, op.name.rpartition("/")[2]].append(op)

    def of(self, record: dict[str, Any]) -> float | None:
        """Return the ms per step of all nodes of a record; None where the profile shows none of them."""
        found: dict[str, float] = {}
        for name in record["names"]:
            for op in self._by_end.get((record["op"], name.rpartition("/")[2]), ()):
                if _ends_with(op.name, name):
                    found[op.name] = op.ms
        return sum(found.values()) if found else None
