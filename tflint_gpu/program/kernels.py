"""Which ops and public functions have no GPU kernel, from tables generated out of TensorFlow's kernel registry.

``scripts/generate_kernel_table.py`` makes the tables and says how. There is one for each version of TensorFlow
that was looked at; for a target between two of them the older one holds, for one before them all the oldest. Which
ops a function becomes is known from the newest TensorFlow and taken to hold for the older ones.
"""

from __future__ import annotations

import functools
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from tflint_gpu.program.calls import Call
    from tflint_gpu.program.values import Value

#: A version of TensorFlow as (major, minor).
Version: TypeAlias = "tuple[int, int]"

#: Kinds of tensor that a condition can ask for, and the calls that make one (prefixes of canonical names).
_MAKERS = {
    "sparse": ("tf.SparseTensor", "tf.sparse.", "tf.io.parse_single_sequence", "tf.compat.v1.SparseTensor"),
    "ragged": ("tf.RaggedTensor.from_", "tf.ragged.", "tf.strings.split", "tf.RaggedTensor.with_"),
}
#: These run Python, whatever device they are registered for.
_PYTHON_OPS = frozenset({"PyFunc", "PyFuncStateless", "EagerPyFunc"})
#: Functions of these modules that give back ordinary tensors.
_DENSE = ("tf.sparse.to_dense", "tf.sparse.reduce_", "tf.sparse.sparse_dense_matmul", "tf.ragged.range.to_tensor")


@dataclass(frozen=True)
class CpuOnlyOp:
    """What a call becomes that no GPU kernel takes.

    `ops` are the op types, those of the gradient last; `xla_ok` says whether XLA compiles the call (None: not
    tried), tried on a CPU; `replacement` is what to use instead, "" where nothing better is known.
    """

    ops: tuple[str, ...]
    xla_ok: bool | None
    replacement: str


def cpu_only(api_name: str, call: Call | None = None, tensorflow: Version | None = None) -> CpuOnlyOp | None:
    """Return the CPU-only ops that a call of `api_name` (canonical: ``tf.image.resize``) becomes, None for none.

    Functions whose op depends on an argument need `call`; where that argument is not known, the answer is None.
    `tensorflow` is the version that the program is meant for, None for the newest known.
    """
    for entry in _entries_of(api_name, table_version(tensorflow)):
        if entry["ops"] and all(_holds(condition, call) for condition in entry["when"]):
            ops = (*entry["ops"], *entry["gradient_ops"])
            return CpuOnlyOp(ops, entry["xla"], _replacement(ops, api_name))
    return None


def lacks_kernels(api_name: str, tensorflow: Version | None = None) -> bool:
    """Say whether some call of `api_name` becomes ops without a GPU kernel: whether `cpu_only` need be asked."""
    return any(entry["ops"] for entry in _entries_of(api_name, table_version(tensorflow)))


def xla_refuses(api_name: str, call: Call | None = None) -> tuple[str, ...]:
    """Return the ops in a call of `api_name` that XLA cannot compile; empty where it can, or nothing is known."""
    for entry in _entries_of(api_name, table_version(None)):
        if entry["xla"] is False and all(_holds(condition, call) for condition in entry["when"]):
            return tuple(entry["refused"] or entry["ops"])
    return ()


def _entries_of(api_name: str, version: str) -> list[dict[str, Any]]:
    """Return the entries of an API; the raw op functions follow from the op table."""
    if api_name.startswith("tf.raw_ops."):
        op = api_name.removeprefix("tf.raw_ops.")
        table = _table(version)
        if op not in table.cpu_only:
            return []
        return [{"when": [], "ops": [op], "gradient_ops": [], "xla": op in table.xla, "refused": [op]}]
    return _apis(version).get(api_name, [])


@functools.cache
def _apis(version: str) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for entry in _read("apis.json")["entries"]:
        known = _in_version(entry, _table(version), _table(_versions()[0]))
        for name in entry["names"]:
            found.setdefault(name, []).append(known)
    # The entry that asks more of the arguments says more exactly what the call becomes.
    return {name: sorted(entries, key=lambda e: -len(e["when"])) for name, entries in found.items()}


def _in_version(entry: dict[str, Any], table: KernelTable, newest: KernelTable) -> dict[str, Any]:
    """Return `entry` with those of its ops that `table` has no GPU kernel for.

    What the newest XLA compiles may have been beyond an older one: there it is not known.
    """
    ops, gradient = (
        [op for op in entry[kind] if op in table.cpu_only or op in _PYTHON_OPS] for kind in ("ops", "gradient_ops")
    )
    since_learnt = any(op in newest.xla and op not in table.xla for op in (*ops, *gradient))
    xla = None if entry["xla"] and since_learnt else entry["xla"]
    return {**entry, "ops": ops, "gradient_ops": gradient, "xla": xla}


def _read(name: str) -> dict[str, Any]:
    """Return one of the tables, in the order it is written in."""
    table: dict[str, Any] = json.loads(Path(__file__).with_name("data").joinpath(name).read_text(encoding="utf-8"))
    return table


def _holds(condition: dict[str, Any], call: Call | None) -> bool:
    """Say whether `call` certainly meets a condition on one argument."""
    if call is None:
        return False
    value = call.argument(condition["argument"], condition["position"])
    if "kind" in condition:
        return _made_as(value, condition["kind"])
    literal = _literal(value)
    known = value is None or literal is not None
    return known and literal in condition["values"]


def _literal(value: Value | None) -> Any:
    """Return a constant's value; ``tf.image.ResizeMethod.BICUBIC`` counts as ``"bicubic"``; None for the rest."""
    from tflint_gpu.program.values import Const, External

    if isinstance(value, Const):
        return value.value.lower() if isinstance(value.value, str) else value.value
    if isinstance(value, External) and ".ResizeMethod." in value.name:
        return value.name.rpartition(".")[2].lower().replace("nearest_neighbor", "nearest")
    return None


def _made_as(value: Value | None, kind: str) -> bool:
    """Say whether `value` came straight out of a call that makes sparse or ragged tensors."""
    from tflint_gpu.program.values import Produced, Tensor

    origin = value.origin if isinstance(value, Tensor) else value.call if isinstance(value, Produced) else None
    if origin is None or origin.callee.startswith(_DENSE):
        return False
    return origin.callee.startswith(_MAKERS[kind])


def _replacement(ops: tuple[str, ...], api_name: str) -> str:
    """Return what to use instead of the first op that something is known for."""
    texts = _read_once("replacements.json")
    if api_name in texts:
        return str(texts[api_name])
    for op in ops:
        fitting = max((key for key in texts if key.endswith("*") and op.startswith(key[:-1])), key=len, default=op)
        if op in texts or fitting in texts:
            return str(texts.get(op, texts.get(fitting, "")))
    return ""


@functools.cache
def _read_once(name: str) -> dict[str, Any]:
    return _read(name)


@dataclass(frozen=True)
class KernelTable:
    """The op half of the tables: TensorFlow's `version`, ops without a GPU kernel, GPU kernels, XLA's ops.

    A kernel in `gpu` is ``[{type attribute: allowed types}, works in host memory]``.
    """

    version: str
    cpu_only: frozenset[str]
    gpu: dict[str, list[tuple[dict[str, list[str]], bool]]]
    xla: frozenset[str]

    def place(self, op: str, types: dict[str, str]) -> tuple[str | None, str]:
        """Return (``cpu`` | ``gpu``, why) for an op with these type attributes; (None, "") for an unknown op.

        `why` is ``no-kernel``, ``dtype``, ``host-memory`` or "", as the probe has it.
        """
        if op in self.cpu_only:
            return "cpu", "no-kernel"
        if op not in self.gpu:
            return None, ""
        fitting = [host for allowed, host in self.gpu[op] if _accepts(allowed, types)]
        if not fitting:
            return "cpu", "dtype"
        return ("cpu", "host-memory") if all(fitting) else ("gpu", "")


def _accepts(allowed: dict[str, list[str]], types: dict[str, str]) -> bool:
    return all(set(types[name].split(",")) <= set(kinds) for name, kinds in allowed.items() if name in types)


def kernel_table(tensorflow: Version | None = None) -> KernelTable:
    """Return the op table that holds for a version of TensorFlow, None for the newest known."""
    return _table(table_version(tensorflow))


def table_version(tensorflow: Version | None = None) -> str:
    """Return the version whose table holds for `tensorflow`: the newest not newer than it, else the oldest."""
    versions = _versions() if tensorflow is not None and tensorflow < _release(_newest()) else (_newest(),)
    return next((name for name in versions if tensorflow is None or _release(name) <= tensorflow), versions[-1])


def release_of(version: str | None) -> Version | None:
    """Return ``2.15.1`` as (2, 15); None for what is no version."""
    found = re.match(r"(\d+)\.(\d+)", version or "")
    return (int(found[1]), int(found[2])) if found else None


def _release(table: str) -> Version:
    major, minor, _ = table.split(".", 2)
    return int(major), int(minor)


def _newest() -> str:
    return str(_read_once("kernels.json")["tensorflow"])


@functools.cache
def _versions() -> tuple[str, ...]:
    """Return the versions that there are tables of, the newest first."""
    return (_newest(), *_read_once("older_kernels.json"))


@functools.cache
def _table(version: str) -> KernelTable:
    raw = _read_once("kernels.json")
    cpu_only, gpu, xla = frozenset(raw["cpu_only"]), dict(raw["gpu"]), frozenset(raw["xla"])
    # Each older table is told by what differs from the next newer one.
    older = _versions()[1:] if version != _newest() else ()
    for name in older[: older.index(version) + 1] if older else ():
        changes = _read_once("older_kernels.json")[name]
        cpu_only, xla = _changed(cpu_only, changes["cpu_only"]), _changed(xla, changes["xla"])
        gpu |= changes["gpu"]
    return KernelTable(version, cpu_only, {op: found for op, found in gpu.items() if found is not None}, xla)


def _changed(ops: frozenset[str], change: dict[str, list[str]]) -> frozenset[str]:
    return ops.difference(change["drop"]).union(change["add"])
