"""The files that say which packages a project needs."""

from __future__ import annotations

import os
import re
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
        "pylock.toml",
    }
)
#: Files whose versions are what is really installed: they have the first word.
_LOCKS = frozenset({"pipfile.lock", "poetry.lock", "uv.lock", "pdm.lock", "pylock.toml", "conda-lock.yml"})
#: Files for machines with GPUs come first, those for other work than training and for other machines last.
_FIRST = re.compile(r"(?:^|[-_.])(?:gpu|cuda)(?:[-_.\d]|$)")
_ASIDE = re.compile(
    r"(?:^|[-_.])(?:dev|tests?|docs?|lint|ci|build|apple|mac(?:os)?|darwin|win(?:dows)?|tpu|cpu)(?:[-_.]|$)"
)
_CONDA = re.compile(r"(?:conda|env(?:ironment)?)(?:[-_.].*)?\.ya?ml")
_INCLUDED = re.compile(r"^\s*(?:-r|-c|--requirement|--constraint)[\s=]+([^\s#]+)", re.MULTILINE)


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
    files = [folder / name for name in names if _is_requirement_file(name.lower())]
    files += (folder / "requirements").glob("*.txt") if "requirements" in names else ()
    found: dict[Path, None] = {}
    for path in sorted(files, key=_rank):
        _add_with_included(path, found)
    return list(found)


def _rank(path: Path) -> tuple[int, int, bool, str]:
    name = path.name.lower()
    inside = path.parent.name == "requirements"
    fitting = -1 if _FIRST.search(name) else 1 if _ASIDE.search(name) else 0
    return (0 if name in _LOCKS else 1 + inside, fitting, name != "requirements.txt", path.name)


def _add_with_included(path: Path, found: dict[Path, None]) -> None:
    """Add a file and, of a list of pip's, the files that it names by ``-r`` and ``-c``."""
    if path in found or not _is_file(path):
        return
    found[path] = None
    if path.suffix not in (".txt", ".in"):
        return
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return
    for name in _INCLUDED.findall(text):
        if "://" not in name and not name.startswith("/"):
            _add_with_included(Path(os.path.normpath(path.parent / name)), found)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        return False


def _is_requirement_file(name: str) -> bool:
    if name in _NAMES or _CONDA.fullmatch(name):
        return True
    return name.endswith((".txt", ".in")) and ("requirements" in name or name.startswith("constraints"))
