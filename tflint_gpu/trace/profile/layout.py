"""Finds the files of a profile: TensorBoard's folders, one run's folder, or a bare file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tflint_gpu.errors import UserError

#: What profilers leave in a run's folder; ``<host>.`` comes before each.
_TOOLS = (
    "overview_page.pb",
    "input_pipeline.pb",
    "kernel_stats.pb",
    "tensorflow_stats.pb",
    "trace.json.gz",
)


@dataclass(frozen=True)
class Run:
    """One recorded run: its XPlane files (one a host), TensorFlow's own tables, and chrome timelines.

    `skipped` counts the other runs beside it, which are older.
    """

    folder: Path
    xplanes: tuple[Path, ...] = ()
    tools: tuple[Path, ...] = ()
    timelines: tuple[Path, ...] = ()
    skipped: int = 0


def find_run(path: Path) -> Run:
    """Return the newest run at or below `path`, or the file `path` as a run of its own.

    Raises `UserError` where there is none, saying what was looked for.
    """
    if path.is_file():
        return _of_file(path)
    if path.exists() and not path.is_dir():
        raise UserError(f"{path}: neither a file nor a folder; give a TensorBoard log folder or a .xplane.pb file")
    if not path.is_dir():
        raise UserError(f"{path}: no such file or folder; give a TensorBoard log folder or a .xplane.pb file")
    for pattern in ("**/*.xplane.pb", *(f"**/*{tool}" for tool in _TOOLS)):
        files = [file for file in path.glob(pattern) if file.is_file()]
        if files:
            folders = {file.parent for file in files}
            newest = max(folders, key=_age)
            return Run(
                newest,
                tuple(sorted(newest.glob("*.xplane.pb"))),
                tuple(sorted(file for file in newest.iterdir() if file.name.endswith(_TOOLS))),
                skipped=len(folders) - 1,
            )
    timelines = sorted(file for file in path.glob("*.json") if _is_timeline(file))
    if timelines:
        return Run(path, timelines=tuple(timelines))
    raise UserError(
        f"{path}: no profile here or below (no *.xplane.pb); give the folder that was the profiler's logdir"
    )


def _of_file(path: Path) -> Run:
    if path.name.endswith(_TOOLS):
        return Run(path.parent, tools=(path,))
    if path.suffix == ".json" or path.name.endswith(".json.gz"):
        return Run(path.parent, timelines=(path,))
    return Run(path.parent, xplanes=(path,))


def _age(folder: Path) -> tuple[str, float]:
    """Order runs: TensorBoard names their folders by time; copies keep the name and lose the date."""
    stamped = folder.name[:4].isdigit() and folder.name.count("_") >= 4
    return (folder.name if stamped else "", folder.stat().st_mtime)


def _is_timeline(file: Path) -> bool:
    with file.open("rb") as stream:
        return b"traceEvents" in stream.read(4096)
