"""Generate the tables of ops and APIs without a GPU kernel, for every version of TensorFlow that was looked at.

``scripts/read_kernel_registry.py FOLDER`` comes first, once with each TensorFlow; then, from the root of the
repository and with the interpreter that has the newest of them, about ten minutes:

    python scripts/generate_kernel_table.py FOLDER

It writes to ``tflint_gpu/program/data/``:

* ``kernels.json``: per op of the newest TensorFlow, what its GPU kernels accept and which ops XLA compiles;
* ``older_kernels.json``: for every older version, what differs from the next newer one;
* ``apis.json``: per public function, the ops that it becomes for which some version has no GPU kernel, from
  tracing it, with those of its gradient and whether XLA compiles it. XLA is tried on the CPU: a refusal is strong
  evidence for a GPU, no proof.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import json
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]

import keras  # noqa: E402
import tensorflow as tf  # noqa: E402
from api_calls import guesses, samples  # noqa: E402
from api_recipes import RECIPES, Recipe  # noqa: E402
from read_kernel_registry import load_xla  # noqa: E402

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


@dataclass(frozen=True)
class Known:
    """What the registries tell: the ops that XLA `compiled`, and those that an older TensorFlow has `lost`."""

    compiled: frozenset[str]
    lost: frozenset[str]


def main(folder: Path) -> None:
    """Write the tables and say what they hold."""
    tables = sorted(map(read, folder.glob("*.json")), key=release, reverse=True)
    newest, older = tables[0], tables[1:]
    if newest["tensorflow"] != tf.__version__:
        raise SystemExit(f"run this with TensorFlow {newest['tensorflow']}, the newest in {folder}")
    load_xla()
    known = Known(frozenset(newest["xla"]), frozenset(op for table in older for op in table["cpu_only"]))
    placement.Kernels = functools.cache(Kernels)  # type: ignore[misc]  # reading it takes a second each time
    entries = list(described(known))
    names = {name for entry in entries for name in entry["names"]} | {r.api for r in RECIPES}
    found, untraced = discovered(known, names)
    versions = {"tensorflow": tf.__version__, "keras": keras.__version__}
    entries = sorted(entries + found, key=lambda e: (e["names"], json.dumps(e["when"])))
    write("apis.json", {**versions, "entries": entries, "untraced": sorted(untraced)})
    write("kernels.json", {**versions, **{kind: newest[kind] for kind in ("cpu_only", "gpu", "xla")}})
    write("older_kernels.json", dict(differences(tables)))
    print(f"{len(entries)} entries; {len(untraced)} functions could not be traced", file=sys.stderr)  # noqa: T201


def read(file: Path) -> dict[str, Any]:
    """Return what ``read_kernel_registry.py`` wrote."""
    table: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return table


def release(table: dict[str, Any]) -> tuple[int, ...]:
    """Return the version of `table` as numbers."""
    return tuple(map(int, table["tensorflow"].split(".")[:2]))


def differences(tables: list[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield, for every version but the newest, what of its registry differs from that of the next newer one.

    ``cpu_only`` and ``xla`` have the ops to ``add`` and to ``drop``; ``gpu`` has the kernels of the ops that
    differ, null where the older version has no GPU kernel.
    """
    for newer, older in itertools.pairwise(tables):
        kernels = {op: older["gpu"].get(op) for op in {**newer["gpu"], **older["gpu"]}}
        yield (
            older["tensorflow"],
            {
                **{kind: changed(newer[kind], older[kind]) for kind in ("cpu_only", "xla")},
                "gpu": {op: found for op, found in kernels.items() if found != newer["gpu"].get(op)},
            },
        )


def changed(newer: list[str], older: list[str]) -> dict[str, list[str]]:
    """Return what makes `older` out of `newer`."""
    return {"add": sorted(set(older) - set(newer)), "drop": sorted(set(newer) - set(older))}


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


def described(known: Known) -> Iterator[dict[str, Any]]:
    """Yield the entries of all recipes that a GPU or XLA has no kernel for; one that fails ends the run."""
    failed = []
    for recipe in RECIPES:
        function = resolve(recipe.api)
        inputs = [samples()[name] for name in recipe.inputs]
        found = ops_of(recipe.run, inputs, known)
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


def discovered(known: Known, described_names: set[str]) -> tuple[list[dict[str, Any]], list[str]]:
    """Trace every public function by guessing its arguments; return entries and the names that no guess suited."""
    aliases = public_functions()
    entries, untraced = [], []
    for names, function in aliases:
        if described_names & set(names):
            continue
        found = first_guess(function, known)
        if found is None:
            untraced.append(names[0])
        elif found["ops"] or found["gradient_ops"] or not found["xla"]:
            entries.append({"names": names, "when": [], **found})
    return entries, untraced


def first_guess(function: Callable[..., Any], known: Known) -> dict[str, Any] | None:
    """Return what the first arguments that `function` accepts make of it."""
    for args, kwargs in guesses(function):
        tensors = [i for i, value in enumerate(args) if tf.is_tensor(value) or hasattr(value, "_type_spec")]

        def run(*given: Any, args: list[Any] = args, tensors: list[int] = tensors, kwargs: Any = kwargs) -> Any:
            filled = list(args)
            for index, value in zip(tensors, given, strict=True):
                filled[index] = value
            return function(*filled, **kwargs)

        found = ops_of(run, [args[i] for i in tensors], known)
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


def ops_of(run: Callable[..., Any], inputs: list[Any], known: Known) -> dict[str, Any] | None:
    """Return the ops without a GPU kernel of `run` and its gradient, and if XLA takes it; None if it fails."""
    specs = [tf.type_spec_from_value(value) for value in inputs]
    try:
        traced = tf.function(run, autograph=False).get_concrete_function(*specs)
    except Exception:
        return None
    if not traced.outputs:
        return None
    ops = cpu_ops(traced, known)
    gradient = cpu_ops(differentiated(run, specs), known) - ops
    types = all_types(traced)
    xla = types <= known.compiled or (not has_strings(traced) and compiles(run, inputs))
    refused = [] if xla else sorted(t for t in types - known.compiled if t not in placement.BOOKKEEPING)
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


def cpu_ops(traced: Any, known: Known) -> set[str]:
    """Return the op types of a traced function that some TensorFlow has no GPU kernel for, and those of Python."""
    if traced is None:
        return set()
    records = placement.collect([traced], lambda _filename: False)
    return {r["op"] for r in records if r["why"] in ("no-kernel", "python") or r["op"] in known.lost} - INCIDENTAL


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
    main(Path(sys.argv[1]))
