"""The files that say which packages a project needs."""

from __future__ import annotations

import os
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


class RequirementFiles:
    """Finds requirement, lock and project files, and looks into each folder once."""

    def __init__(self) -> None:
        self._files: dict[Path, list[Path]] = {}
        self._tops: dict[Path, bool] = {}

    def of(self, *folders: Path) -> list[Path]:
        """Return the files that hold for any of `folders`: of each the nearest first.

        They lie in the folder itself, in its ``requirements/``, and in the folders above it up to the top of the
        repository. Outside a repository only the folder counts, and those above it up to the current one.
        """
        found: dict[Path, None] = {}
        for folder in folders:
            for level in self._levels(folder.resolve()):
                if level not in self._files:
                    self._files[level] = _in_folder(level)
                found.update(dict.fromkeys(self._files[level]))
        return list(found)

    def _levels(self, folder: Path) -> list[Path]:
        levels = [folder, *folder.parents]
        for index, level in enumerate(levels):
            if level not in self._tops:
                self._tops[level] = (level / ".git").exists()
            if self._tops[level]:
                return levels[: index + 1]
        here = Path.cwd()
        return levels[: levels.index(here) + 1 if here in levels else 1]


def find_requirement_files(*folders: Path) -> list[Path]:
    """Return the requirement, lock and project files that hold for any of `folders`: see `RequirementFiles`."""
    return RequirementFiles().of(*folders)


def _in_folder(folder: Path) -> list[Path]:
    try:
        names = {entry.name for entry in os.scandir(folder)}
    except OSError:
        return []
    files = [folder / name for name in sorted(names) if _is_requirement_file(name.lower())]
    inside = sorted((folder / "requirements").glob("*.txt")) if "requirements" in names else []
    return [path for path in files if path.is_file()] + inside


def _is_requirement_file(name: str) -> bool:
    if name in _NAMES:
        return True
    return name.endswith((".txt", ".in")) and "requirements" in name
