"""Write down the kernel registry of the installed TensorFlow: which op and dtype has a kernel for which device.

Run with an interpreter that has the TensorFlow to describe (a CUDA build, which every Linux x86-64 wheel is; no
GPU needed) and Python 3.8 or later; seconds:

    python scripts/read_kernel_registry.py FOLDER

It writes ``FOLDER/<version>.json``. ``scripts/generate_kernel_table.py`` makes the package's data out of them.
"""

from __future__ import annotations

import collections
import inspect
import json
import os
import sys
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tensorflow as tf
from tensorflow.python.framework import kernels

from tflint_gpu.trace.probe.registry import Kernels, cuda_build


def main(folder: Path) -> None:
    """Write the registry of the installed TensorFlow to `folder` and say what it holds."""
    if not cuda_build():
        raise SystemExit("this TensorFlow was built without CUDA: its registry knows no GPU kernels")
    load_xla()
    table = {"tensorflow": tf.__version__, **registry()}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{tf.__version__}.json").write_text(json.dumps(table), encoding="utf-8")
    counts = {name: len(ops) for name, ops in table.items() if name != "tensorflow"}
    print(tf.__version__, counts, file=sys.stderr)  # noqa: T201


def load_xla() -> None:
    """Run one compiled function: TensorFlow registers XLA's kernels no earlier."""
    parameters = inspect.signature(tf.function).parameters
    # Before TensorFlow 2.5 it had another name.
    name = "jit_compile" if "jit_compile" in parameters else "experimental_compile"
    tf.function(lambda x: x * 2, **{name: True})(tf.ones(3))


def registry() -> dict[str, Any]:
    """Return ``cpu_only`` ops, ``gpu`` kernels of the others, and the ops that ``xla`` has a GPU kernel for.

    A GPU kernel is ``[{type attribute: allowed types}, runs in host memory]``; kernels alike but for one
    attribute are joined.
    """
    by_op: dict[str, dict[str, list[Any]]] = collections.defaultdict(lambda: collections.defaultdict(list))
    compiled = set()
    for kernel in kernels.get_all_registered_kernels().kernel:
        if kernel.device_type == "XLA_GPU_JIT":
            compiled.add(kernel.op)
        if not kernel.label:
            by_op[kernel.op][kernel.device_type].append(kernel)
    probe, gpu, cpu_only = Kernels(), {}, []
    for op, devices in sorted(by_op.items()):
        if devices["GPU"] or devices["DEFAULT"]:
            gpu[op] = joined(op, devices["GPU"] + devices["DEFAULT"], probe)
        elif devices["CPU"]:
            cpu_only.append(op)
    return {"cpu_only": cpu_only, "gpu": gpu, "xla": sorted(compiled)}


def joined(op: str, found: list[Any], probe: Kernels) -> list[Any]:
    """Return the kernels of `op` in short form, those that differ in one attribute as one."""
    groups: dict[str, list[Any]] = {}
    for kernel in found:
        types = {
            c.name: sorted(tf.dtypes.as_dtype(t).name for t in c.allowed_values.list.type)
            for c in kernel.constraint
            if c.allowed_values.list.type
        }
        host = probe.on_host(kernel, op)
        last = max(types, default="")
        rest = json.dumps([{k: v for k, v in types.items() if k != last}, host, last])
        known = groups.setdefault(rest, [dict(types), host])
        if last:
            known[0][last] = sorted({*known[0][last], *types[last]})
    return list(groups.values())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
