"""Generate the tables of ops and APIs without a GPU kernel from the installed TensorFlow.

Run with the interpreter whose TensorFlow the tables shall describe (a CUDA build, which every Linux x86-64
wheel is; no GPU needed), from the root of the repository; about five minutes:

    python scripts/generate_kernel_table.py

It writes two files to ``tflint_gpu/program/data/``:

* ``kernels.json``: per op, what its GPU kernels accept and which ops XLA compiles, from the kernel registry;
* ``apis.json``: per public function, the ops without a GPU kernel that it becomes, from tracing it, with the
  ops of its gradient and whether XLA compiles it. XLA is tried on the CPU: a refusal is strong evidence for a
  GPU, no proof.
"""

from __future__ import annotations

import collections
import inspect
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]

import keras  # noqa: E402
import tensorflow as tf  # noqa: E402
from api_calls import guesses, samples  # noqa: E402
from api_recipes import RECIPES, Recipe  # noqa: E402
from tensorflow.python.framework import kernels  # noqa: E402

from tflint_gpu.trace.probe import placement  # noqa: E402
from tflint_gpu.trace.probe.registry import Kernels  # noqa: E402

DATA = ROOT / "tflint_gpu" / "program" / "data"
MODULES = (
    "tf", "tf.math", "tf.math.special", "tf.nn", "tf.nn.experimental", "tf.image", "tf.linalg",
    "tf.linalg.experimental", "tf.strings", "tf.sparse", "tf.ragged", "tf.random", "tf.random.experimental",
    "tf.signal", "tf.sets", "tf.quantization", "tf.audio", "tf.io", "tf.bitwise", "tf.dtypes", "keras.ops",
    "keras.ops.nn", "keras.ops.image", "keras.ops.linalg", "keras.random", "tf.compat.v1", "tf.compat.v1.nn",
    "tf.compat.v1.image", "tf.compat.v1.math", "tf.compat.v1.strings", "tf.compat.v1.sparse",
    "tf.compat.v1.random", "tf.compat.v1.sets",
)  # fmt: skip
#: Functions that write files, wait, switch global state or only build data: no part of a training step.
LEFT_OUT = (
    "write_", "save", "enable_", "disable_", "set_", "assert", "Assert", "debugging", "global_", "delete_",
    "matching_files", "placeholder", "get_", "report_", "tables_", "local_", "trainable_", "initialize",
    "variables_", "variable_", "Print", "print", "queue", "in_top", "import_", "load_", "read_file", "parse_",
    "decode_csv", "timestamp", "numpy_function", "py_func", "random_seed", "custom_gradient", "recompute_grad",
    "no_", "inside_", "executing", "is_", "has_", "device", "guarantee_", "check_",
)  # fmt: skip
#: An op of these types says nothing about the API's real work: key and seed bookkeeping, checks, resources.
INCIDENTAL = frozenset(
    (
        "StatelessRandomGetAlg",
        "AnonymousSeedGenerator",
        "CheckNumerics",
        "LookupTableImportV2",
        "LookupTableExportV2",
    )
)


def main() -> None:
    """Write both tables and say what they hold."""
    load_xla()
    compiled = xla_ops()
    entries = list(described(compiled))
    names = {name for entry in entries for name in entry["names"]} | {r.api for r in RECIPES}
    found, untraced = discovered(compiled, names)
    versions = {"tensorflow": tf.__version__, "keras": keras.__version__}
    entries = sorted(entries + found, key=lambda e: (e["names"], json.dumps(e["when"])))
    write("apis.json", {**versions, "entries": entries, "untraced": sorted(untraced)})
    write("kernels.json", {**versions, **registry(compiled)})
    print(f"{len(entries)} entries; {len(untraced)} functions could not be traced", file=sys.stderr)  # noqa: T201


def write(name: str, table: dict[str, Any]) -> None:
    """Write `table` so that a change of TensorFlow shows as a readable difference: one entry a line."""
    lines = []
    for key, value in table.items():
        if isinstance(value, list):
            body = ",\n  ".join(json.dumps(item) for item in value)
            lines.append(f"{json.dumps(key)}: [\n  {body}\n ]")
        elif isinstance(value, dict):
            body = ",\n  ".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in sorted(value.items()))
            lines.append(f"{json.dumps(key)}: {{\n  {body}\n }}")
        else:
            lines.append(f"{json.dumps(key)}: {json.dumps(value)}")
    DATA.mkdir(parents=True, exist_ok=True)
    (DATA / name).write_text("{\n " + ",\n ".join(lines) + "\n}\n", encoding="utf-8")


def load_xla() -> None:
    """Run one compiled function: TensorFlow registers XLA's kernels no earlier."""
    tf.function(lambda x: x * 2, jit_compile=True)(tf.ones(3))


def xla_ops() -> set[str]:
    """Return the ops that XLA has a GPU kernel for."""
    return {k.op for k in kernels.get_all_registered_kernels().kernel if k.device_type == "XLA_GPU_JIT"}


def registry(compiled: set[str]) -> dict[str, Any]:
    """Return the op half: ``cpu_only`` ops, ``gpu`` kernels of the others, ``xla`` ops.

    A GPU kernel is ``[{type attribute: allowed types}, runs in host memory]``; kernels alike but for one
    attribute are joined.
    """
    by_op: dict[str, dict[str, list[Any]]] = collections.defaultdict(lambda: collections.defaultdict(list))
    for kernel in kernels.get_all_registered_kernels().kernel:
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


def described(compiled: set[str]) -> Iterator[dict[str, Any]]:
    """Yield the entries of all recipes that a GPU or XLA has no kernel for; one that fails ends the run."""
    failed = []
    for recipe in RECIPES:
        function = resolve(recipe.api)
        inputs = [samples()[name] for name in recipe.inputs]
        found = ops_of(recipe.run, inputs, compiled)
        if found is None:
            failed.append(recipe.api)
        elif found["ops"] or found["gradient_ops"] or not found["xla"]:
            yield {"names": [recipe.api, *recipe.also], "when": conditions(recipe, function), **found}
    if failed:
        raise SystemExit(f"these calls no longer work, correct their recipes: {', '.join(failed)}")


def conditions(recipe: Recipe, function: Any) -> list[dict[str, Any]]:
    """Return the conditions of `recipe` with the position of each argument."""
    names = list(inspect.signature(function).parameters)
    return [
        {
            "argument": name,
            "position": names.index(name),
            **({"kind": v} if isinstance(v, str) else {"values": list(v)}),
        }
        for name, v in recipe.when
    ]


def resolve(name: str) -> Any:
    """Return the object behind a canonical name; Keras names missing there are looked for in ``tf.keras``."""
    first, *rest = name.split(".")
    found: Any = {"tf": tf, "keras": keras}[first]
    for part in rest:
        found = getattr(found, part, None) or getattr(tf.keras.backend, part)
    return found


def discovered(compiled: set[str], known: set[str]) -> tuple[list[dict[str, Any]], list[str]]:
    """Trace every public function by guessing its arguments; return entries and the names that no guess suited."""
    aliases = public_functions()
    entries, untraced = [], []
    for names, function in aliases:
        if known & set(names):
            continue
        found = first_guess(function, compiled)
        if found is None:
            untraced.append(names[0])
        elif found["ops"] or found["gradient_ops"] or not found["xla"]:
            entries.append({"names": names, "when": [], **found})
    return entries, untraced


def first_guess(function: Callable[..., Any], compiled: set[str]) -> dict[str, Any] | None:
    """Return what the first arguments that `function` accepts make of it."""
    for args, kwargs in guesses(function):
        tensors = [i for i, value in enumerate(args) if tf.is_tensor(value) or hasattr(value, "_type_spec")]

        def run(*given: Any, args: list[Any] = args, tensors: list[int] = tensors, kwargs: Any = kwargs) -> Any:
            filled = list(args)
            for index, value in zip(tensors, given, strict=True):
                filled[index] = value
            return function(*filled, **kwargs)

        found = ops_of(run, [args[i] for i in tensors], compiled)
        if found is not None:
            return found
    return None


def public_functions() -> list[tuple[list[str], Callable[..., Any]]]:
    """Return the public functions of `MODULES`, each once with all its names."""
    names: dict[int, list[str]] = {}
    functions: dict[int, Callable[..., Any]] = {}
    for module in MODULES:
        holder = resolve(module)
        for name in sorted(dir(holder)):
            function = getattr(holder, name, None)
            if name.startswith(("_", *LEFT_OUT)) or inspect.isclass(function) or not callable(function):
                continue
            if not str(getattr(function, "__module__", "")).startswith(("tensorflow.python.", "keras.src.")):
                continue
            functions[id(function)] = function
            names.setdefault(id(function), []).append(f"{module}.{name}")
    return [(sorted(names[key], key=lambda n: ("v1" in n, n)), functions[key]) for key in functions]


def ops_of(run: Callable[..., Any], inputs: list[Any], compiled: set[str]) -> dict[str, Any] | None:
    """Return the ops without a GPU kernel of `run` and its gradient, and if XLA takes it; None if it fails."""
    specs = [tf.type_spec_from_value(value) for value in inputs]
    try:
        traced = tf.function(run, autograph=False).get_concrete_function(*specs)
    except Exception:
        return None
    if not traced.outputs:
        return None
    ops = cpu_ops(traced)
    gradient = cpu_ops(differentiated(run, specs)) - ops
    types = all_types(traced)
    xla = types <= compiled or (not has_strings(traced) and compiles(run, inputs))
    refused = [] if xla else sorted(t for t in types - compiled if t not in placement.BOOKKEEPING)
    return {"ops": sorted(ops), "gradient_ops": sorted(gradient), "xla": xla, "refused": refused}


def differentiated(run: Callable[..., Any], specs: list[Any]) -> Any:
    """Return the traced gradient of `run` by its inputs, None where it has none."""

    def gradient(*given: Any) -> Any:
        sources = [x for x in given if tf.is_tensor(x) and x.dtype.is_floating]
        with tf.GradientTape() as tape:
            tape.watch(sources)
            results = [y for y in tf.nest.flatten(run(*given)) if tf.is_tensor(y) and y.dtype.is_floating]
            total = tf.add_n([tf.reduce_sum(tf.cast(y, tf.float32)) for y in results])
        return [g for g in tape.gradient(total, sources) if g is not None]

    try:
        return tf.function(gradient, autograph=False).get_concrete_function(*specs)
    except Exception:
        return None


def cpu_ops(traced: Any) -> set[str]:
    """Return the op types of a traced function that no GPU kernel takes, and those that run Python."""
    if traced is None:
        return set()
    records = placement.collect([traced], lambda _filename: False)
    return {r["op"] for r in records if r["why"] in ("no-kernel", "python")} - INCIDENTAL


def all_types(traced: Any) -> set[str]:
    """Return all op types of a traced function and of the functions in its library."""
    definition = traced.graph.as_graph_def()
    bodies = [definition.node, *(function.node_def for function in definition.library.function)]
    return {node.op for body in bodies for node in body} - {"Placeholder", "_Arg", "_Retval"}


def has_strings(traced: Any) -> bool:
    """Say whether strings flow through the function: XLA knows none, and some crash the process that tries."""
    return any(t.dtype == tf.string for op in traced.graph.get_operations() for t in (*op.inputs, *op.outputs))


def compiles(run: Callable[..., Any], inputs: list[Any]) -> bool:
    """Say whether `run` compiles with XLA: some ops do without a kernel of their own, by way of MLIR."""
    try:
        tf.function(run, autograph=False, jit_compile=True)(*inputs)
    except Exception:
        return False
    return True


if __name__ == "__main__":
    main()
