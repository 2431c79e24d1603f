"""What `static.py` measures inside a process of its own, so that start-up and imports stay out of the figures.

    python benchmarks/inside.py survivors LISTING PATH...   write the files that a check parses to LISTING
    python benchmarks/inside.py parse LISTING               time `ast.parse` over them
    python benchmarks/inside.py check PATH...               time a check of everything, all rules on

The two that time print ``{"wall": seconds, "cpu": seconds}``.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

#: A check in this process that owes nothing to settings, notebooks and earlier runs.
CHECK = ("check", "--isolated", "--no-cache", "--jobs", "1", "--exclude", "*.ipynb")

#: Enough TensorFlow for every module of the check to be imported before the clock starts.
WARM_UP = """\
import tensorflow as tf

ds = tf.data.Dataset.range(9).batch(3)
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(ds)
"""


def timed(work: Callable[[], object]) -> None:
    """Run `work` and print what it took."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    print(json.dumps({"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}))


def parse(listing: Path) -> None:
    """Parse the files that `listing` names, one a line, each tree dropped at once."""
    for path in listing.read_text(encoding="utf-8").splitlines():
        ast.parse(Path(path).read_bytes())


def check(paths: list[str]) -> None:
    """Check `paths` with all rules; the report goes nowhere."""
    from tflint_gpu.cli import main as command_line

    sys.argv = ["tflint-gpu", *CHECK, *paths]
    quiet = contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO())
    with quiet[0], quiet[1], contextlib.suppress(SystemExit):
        command_line()


def survivors(listing: Path, paths: list[str]) -> None:
    """Write to `listing` those files of `paths` whose text a check hands to `ast.parse`."""
    parsed: set[str] = set()
    original = ast.parse

    def watched(source: str, *args: object, **options: object) -> ast.AST:
        parsed.add(source)
        return original(source, *args, **options)  # type: ignore[call-overload, no-any-return]

    ast.parse = watched  # type: ignore[assignment]
    check(paths)
    ast.parse = original
    files = [file for path in map(Path, paths) for file in ([path] if path.is_file() else path.rglob("*.py"))]
    kept = [str(file) for file in sorted(files) if _text(file) in parsed and _is_python(file)]
    listing.write_text("".join(f"{file}\n" for file in kept), encoding="utf-8")


def _text(file: Path) -> str | None:
    from tflint_gpu.source.files import SourceFile
    from tflint_gpu.source.texts import ReadError

    try:
        return SourceFile(str(file), file).read().text
    except ReadError:
        return None


def _is_python(file: Path) -> bool:
    try:
        ast.parse(file.read_bytes())
    except (SyntaxError, ValueError):
        return False
    return True


def main(command: str, *arguments: str) -> None:
    """Run one of the commands above."""
    warnings.simplefilter("ignore")
    if command == "survivors":
        survivors(Path(arguments[0]), list(arguments[1:]))
    elif command == "parse":
        timed(lambda: parse(Path(arguments[0])))
    else:
        with tempfile.TemporaryDirectory() as folder:
            small = Path(folder, "small.py")
            small.write_text(WARM_UP, encoding="utf-8")
            check([str(small)])
        timed(lambda: check(list(arguments)))


if __name__ == "__main__":
    main(*sys.argv[1:])
