"""Generate ``tflint_gpu/program/data/api_history.json``: since when there is what rules look for or advise.

``scripts/read_api.py FOLDER`` comes first, once with each TensorFlow; then, from the root of the repository:

    python scripts/generate_api_history.py FOLDER

Names and arguments that every version has are left out; of the others the table says the first version that has
them, and the first that no longer does. Keras' names are those of the ``tf.keras`` of that TensorFlow.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tflint_gpu.program.api import SIGNATURES  # noqa: E402

OUTPUT = ROOT / "tflint_gpu" / "program" / "data" / "api_history.json"
#: What messages name that no rule asks the arguments of.
ADVISED = (
    "tf.data.AUTOTUNE",
    "tf.data.experimental.AUTOTUNE",
    "tf.data.Options.autotune",
    "tf.data.Options.deterministic",
    "tf.data.Options.threading",
    "keras.utils.PyDataset",
    "keras.utils.Sequence",
    "keras.mixed_precision.LossScaleOptimizer",
    "keras.optimizers.LossScaleOptimizer",
    "keras.mixed_precision.experimental.set_policy",
    "keras.config.set_dtype_policy",
    "keras.layers.Resizing",
    "keras.layers.RandomFlip",
    "tf.config.experimental.enable_op_determinism",
    "tf.config.experimental.enable_tensor_float_32_execution",
    "tf.distribute.MultiWorkerMirroredStrategy",
    "tf.random.experimental.stateless_shuffle",
    "tf.image.non_max_suppression_padded",
)
#: Arguments whose coming and going concerns nobody.
TRIVIAL = frozenset({"name"})


def main(folder: Path) -> None:
    """Write the table and say what it holds."""
    tables = {
        release(file): json.loads(file.read_text(encoding="utf-8"))["names"] for file in folder.glob("*.json")
    }
    versions = sorted(tables)
    names, arguments = {}, {}
    for name in sorted({*SIGNATURES, *ADVISED}):
        if not name.startswith(("tf.", "keras.")):
            continue
        found = [parameters(tables[version], name) for version in versions]
        if (span := between([entry is not None for entry in found], versions)) is not None:
            names[name] = span
        told = [(version, entry) for version, entry in zip(versions, found, strict=True) if entry]
        for argument in SIGNATURES.get(name, ()):
            there = [argument in entry for _, entry in told]
            if told and not any(there) and not any({"args", "kwargs"} & set(entry) for _, entry in told):
                raise SystemExit(f"no version of {name} takes {argument}: correct SIGNATURES")
            span = between(there, [version for version, _ in told])
            if argument not in TRIVIAL and span is not None:
                arguments.setdefault(name, {})[argument] = span
    known = json.dumps([".".join(map(str, version)) for version in versions])
    parts = [f' "versions": {known}', section("names", names), section("arguments", arguments)]
    OUTPUT.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")
    print(f"{len(names)} names, {len(arguments)} functions with arguments", file=sys.stderr)  # noqa: T201


def release(file: Path) -> tuple[int, ...]:
    """Return the version that a file is named after, as numbers."""
    return tuple(map(int, file.stem.split(".")))


def parameters(names: dict[str, Any], name: str) -> list[str] | None:
    """Return the parameters of `name`, [] where they are not told, None where it does not exist."""
    full = f"tf.{name}" if name.startswith("keras.") else name
    owner, _, member = full.rpartition(".")
    if full in names:
        found = names[full].get("s")
    elif member in names.get(owner, {}).get("m", {}):
        found = names[owner]["m"][member]
    else:
        return None
    return [parameter[0] for parameter in found] if isinstance(found, list) else []


def between(there: Sequence[bool], versions: Sequence[tuple[int, ...]]) -> list[str | None] | None:
    """Return the first version that has a thing and the first one after it that has not; None for all versions."""
    if all(there) or not any(there):
        return None
    first = there.index(True)
    gone = next((place for place in range(first, len(there)) if not there[place]), None)
    text = [".".join(map(str, versions[place])) for place in (first, gone or 0)]
    return [text[0] if first else None, text[1] if gone else None]


def section(title: str, table: dict[str, Any]) -> str:
    """Return a part of the table as JSON, one entry a line."""
    return (
        f' "{title}": {{\n  '
        + ",\n  ".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in table.items())
        + "\n }"
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
