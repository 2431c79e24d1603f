"""Write down the public interface of the installed TensorFlow and its Keras: names, parameters, defaults.

Run with an interpreter that has the TensorFlow to describe and Python 3.8 or later; seconds:

    python scripts/read_api.py FOLDER

It writes ``FOLDER/<version>.json``. ``scripts/generate_api_history.py`` makes the package's data out of them.
"""

from __future__ import annotations

import inspect
import json
import os
import sys
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow as tf

#: Parts that are no interface for programs that train.
LEFT_OUT = frozenset(("core", "lite", "raw_ops", "tools", "dtensor", "tsl", "compiler", "include"))
DEEPEST = 7


def main(folder: Path) -> None:
    """Write the interface of the installed TensorFlow to `folder` and say how much it is."""
    names: dict[str, Any] = {}
    walk("tf", tf, names, set())
    names.pop("tf.keras", None)
    walk("tf.keras", tf.keras, names, set())
    folder.mkdir(parents=True, exist_ok=True)
    release = ".".join(tf.__version__.split(".")[:2])
    text = json.dumps({"version": tf.__version__, "names": names})
    (folder / f"{release}.json").write_text(text, encoding="utf-8")
    print(tf.__version__, len(names), "names", file=sys.stderr)  # noqa: T201


def walk(name: str, found: Any, names: dict[str, Any], seen: set[int]) -> None:
    """Note `found` under `name`, and what is in it: of a class its members, of a module everything public.

    An entry is ``{"k": kind, "s": parameters, "m": members}``; a parameter is ``[name, default]``.
    """
    if name in names or name.count(".") > DEEPEST:
        return
    if inspect.isclass(found):
        names[name] = {"k": "c", "s": parameters(found.__init__), "m": members(found)}
    elif not inspect.ismodule(found):
        names[name] = {"k": "f", "s": parameters(found)} if callable(found) else {"k": "v"}
    elif id(found) not in seen:
        seen.add(id(found))
        names[name] = {"k": "m"}
        for attribute in sorted(dir(found)):
            if not attribute.startswith("_") and attribute not in LEFT_OUT:
                inside = getattr(found, attribute, None)
                if inside is not None and public(inside):
                    walk(f"{name}.{attribute}", inside, names, seen)


def public(found: Any) -> bool:
    """Say whether a module is one that programs are meant to see."""
    if not inspect.ismodule(found):
        return True
    where = getattr(found, "__name__", "")
    return where.startswith(("tensorflow", "keras", "tf_keras")) and not any(
        part in where for part in (".python", ".src", "tensorflow.core")
    )


def members(cls: type) -> dict[str, Any]:
    """Return the public members of a class, methods with their parameters."""
    found: dict[str, Any] = {}
    for attribute in dir(cls):
        if not attribute.startswith("_"):
            value = inspect.getattr_static(cls, attribute, None)
            value = value.__func__ if isinstance(value, (staticmethod, classmethod)) else value
            found[attribute] = parameters(value) if callable(value) else None
    return found


def parameters(function: Any) -> list[list[str | None]] | None:
    """Return names and defaults of the parameters, None where there is no saying."""
    try:
        described = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    return [[p.name, None if p.default is p.empty else repr(p.default)[:60]] for p in described]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
