"""The files that say which packages a project needs."""

from __future__ import annotations

from pathlib import Path

_NAMES = frozenset(
    {
        "pyproject.toml",
        "setup.cfg",
        "setup.py",
        "pipfile",
        "pipfile.lock",
        "poetry.lock",
        "uv.lock",
        "pdm.lock",
        "environment.yml",
        "environment.yaml",
        "conda.yml",
        "conda.yaml",
    }
)


def find_requirement_files(folder: Path) -> list[Path]:
    """Return requirement, lock and project files that hold for `folder`, the nearest first.

    They lie in the folder itself, in its ``requirements/``, and in the folders above it up to the top of the
    repository. Outside a repository only the folder counts, and those above it up to the current one.
    """
    found: list[Path] = []
    for level in _levels(folder.resolve()):
        found += _in_folder(level)
    return found


def _levels(folder: Path) -> list[Path]:
    levels = [folder, *folder.parents]
    top = next((index for index, level in enumerate(levels) if (level / ".git").exists()), None)
    if top is None:
        here = Path.cwd()
        top = levels.index(here) if here in levels else 0
    return levels[: top + 1]


def _in_folder(folder: Path) -> list[Path]:
    try:
        names = sorted(folder.iterdir())
        inside = sorted((folder / "requirements").glob("*.txt"))
    except OSError:
        return []
    return [path for path in names if _is_requirement_file(path.name.lower()) and path.is_file()] + inside


def _is_requirement_file(name: str) -> bool:
    if name in _NAMES:
        return True
    return name.endswith((".txt", ".in")) and "requirements" in name
