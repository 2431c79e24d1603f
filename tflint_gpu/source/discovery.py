"""Which files to check: those named, and in folders what git would track, less what the settings exclude."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tflint_gpu.errors import UserError
from tflint_gpu.source.files import SourceFile
from tflint_gpu.source.globs import Globs
from tflint_gpu.source.texts import Error

if TYPE_CHECKING:
    from tflint_gpu.config import Settings

#: Folders that hold no source of the project's own, wherever they lie below a path that is walked.
DEFAULT_EXCLUDES = frozenset(
    {
        *(".git", ".hg", ".svn", ".venv", "venv", ".tox", ".nox", ".direnv", ".eggs", "__pycache__"),
        *(".mypy_cache", ".pytest_cache", ".ruff_cache", ".tflint_gpu_cache", ".tflint-gpu"),
        *("__pypackages__", "node_modules", "site-packages", "dist-packages", ".ipynb_checkpoints"),
        *("build", "dist", "buck-out"),
    }
)
_SUFFIXES = (".py", ".ipynb")
#: Seconds after which a listing by git is given up and the tree walked instead.
_GIT_TIMEOUT = 20
#: What git says of a folder that it cannot look into, as it goes on with the others.
_UNLISTED = re.compile(rb"could not open directory '(.+?)/?': (.+)")


def discover(
    paths: Sequence[str | Path], settings: Settings, errors: list[Error] | None = None
) -> list[SourceFile]:
    """Return the Python files and notebooks among and below `paths`, sorted by path.

    A file that is named is checked whatever its suffix, and even if it is excluded, unless the settings force
    excludes. Folders that cannot be listed go to `errors`. Raises `UserError` for a path that does not exist, and
    for a pipe, a socket or a device, whose end may never come.
    """
    unlisted: list[Error] = [] if errors is None else errors
    found: dict[Path, SourceFile] = {}
    for path in paths:
        absolute = absolute_path(path)
        if not _exists(absolute, path):
            raise UserError(f"{path}: no such file or folder; check the path, or the folder you run from")
        if settings.force_exclude and _excluded_above(absolute, settings.exclude):
            continue
        _refuse_endless(absolute, path)
        if absolute.is_dir():
            for file in _below(absolute, settings.exclude, unlisted):
                found.setdefault(file, source_file(file))
        else:
            found[absolute] = source_file(absolute, explicit=True)
    return sorted(_once(found.values()), key=lambda file: file.path)


def _exists(absolute: Path, named: str | Path) -> bool:
    try:
        return absolute.exists()
    except OSError as problem:
        raise UserError(f"{named}: cannot be read: {problem.strerror}; name a path that can") from None


def _refuse_endless(absolute: Path, named: str | Path) -> None:
    """Raise `UserError` for what is neither a file nor a folder: reading it may wait for ever."""
    if not (absolute.is_file() or absolute.is_dir()):
        raise UserError(
            f"{named}: a pipe, socket or device, not a file; name a file, or hand its text to `tflint-gpu check -`"
        )


def absolute_path(path: str | Path) -> Path:
    """Return `path` as an absolute one without ``..``; links stay, so that reports name what the user named."""
    return Path(os.path.normpath(Path(path).absolute()))


def source_file(absolute: Path, *, explicit: bool = False, content: bytes | None = None) -> SourceFile:
    """Return the file at `absolute`, named relative to the current folder."""
    kind = "notebook" if absolute.suffix == ".ipynb" else "python"
    return SourceFile(relative(absolute), absolute, kind, explicit, content)


def relative(absolute: Path) -> str:
    """Return how reports name `absolute`: relative to the current folder, with forward slashes."""
    try:
        path = os.path.relpath(absolute)
    except ValueError:  # another drive
        path = str(absolute)
    return path.replace(os.sep, "/")


def _once(files: Iterable[SourceFile]) -> Iterator[SourceFile]:
    """Leave out links to files that are there themselves."""
    listed = list(files)
    own = {file.absolute for file in listed if not file.absolute.is_symlink()}
    for file in listed:
        if file.absolute in own or file.absolute.resolve() not in own:
            yield file


def _excluded_above(absolute: Path, excludes: tuple[Globs, ...]) -> bool:
    """Say whether a pattern, or a default, excludes `absolute` or a folder above it."""
    if not DEFAULT_EXCLUDES.isdisjoint(Path(relative(absolute)).parts):
        return True
    return any(globs.covers(absolute, folder=absolute.is_dir()) for globs in excludes)


def _below(folder: Path, excludes: tuple[Globs, ...], errors: list[Error]) -> Iterator[Path]:
    unlisted: list[Error] = []
    listed = _listed_by_git(folder, unlisted)
    files = list(_walk(folder, unlisted)) if listed is None else listed
    # What an exclude covers nobody misses.
    errors += [error for error in unlisted if not _excluded_above(absolute_path(error.path), excludes)]
    for file in files:
        if not any(globs.covers(file) for globs in excludes):
            yield file


def _listed_by_git(folder: Path, errors: list[Error]) -> list[Path] | None:
    """Return what git tracks or would add below `folder`; None where there is no repository or no answer."""
    if not any((level / ".git").exists() for level in (folder, *folder.parents)):
        return None
    listing = _git(folder, "ls-files", "-z", "-c", "-o", "--exclude-standard")
    # Nothing is listed in a folder that git ignores; who names it wants it checked all the same.
    if listing is None or (not listing.files and _git(folder, "check-ignore", "-q", ".") is not None):
        return None
    names = (os.fsdecode(name) for name in listing.files.split(b"\0") if name)
    errors += [
        _unlisted(folder / os.fsdecode(match[1]), os.fsdecode(match[2]))
        for match in _UNLISTED.finditer(listing.complaints)
    ]
    return [file for name in names for file in _entry(folder, name, errors)]


class _Listing(NamedTuple):
    """What git printed on standard output, and what it complained of."""

    files: bytes
    complaints: bytes


def _git(folder: Path, *arguments: str) -> _Listing | None:
    """Return what git prints in `folder`, None where it fails or takes too long."""
    import subprocess

    # In a git hook these variables point at another repository's index.
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | {"LC_ALL": "C"}
    try:
        answer = subprocess.run(
            ["git", "-c", "core.fsmonitor=false", *arguments],
            cwd=folder,
            env=clean,
            capture_output=True,
            timeout=_GIT_TIMEOUT,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return _Listing(answer.stdout, answer.stderr)


def _entry(folder: Path, name: str, errors: list[Error]) -> Iterator[Path]:
    """Yield the files behind one line of git's: a file, or the files of a nested repository."""
    parts = name.rstrip("/").split("/")
    if not DEFAULT_EXCLUDES.isdisjoint(parts):
        return
    if name.endswith(_SUFFIXES):
        path = folder / name
        if _is_file(path):
            yield path
    elif "." not in parts[-1] and (path := folder / name).is_dir() and not path.is_symlink():
        nested = _listed_by_git(path, errors) if (path / ".git").exists() else None
        yield from _walk(path, errors) if nested is None else nested


def _is_file(path: Path | os.DirEntry[str]) -> bool:
    try:
        return path.is_file()
    except OSError as problem:
        # A link that leads to itself is no more a file than one that leads nowhere; reading others tells why.
        return problem.errno != errno.ELOOP


def _walk(top: Path, errors: list[Error]) -> Iterator[Path]:
    """Yield the Python files and notebooks below `top`, honouring the ``.gitignore`` files met on the way.

    Folders that cannot be listed go to `errors`.
    """
    stack: list[tuple[Path, tuple[Globs, ...]]] = [(top, ())]
    while stack:
        folder, ignores = stack.pop()
        try:
            entries = list(os.scandir(folder))
        except OSError as problem:
            errors.append(_unlisted(folder, problem.strerror or str(problem)))
            continue
        names = {entry.name for entry in entries}
        if "pyvenv.cfg" in names and folder != top:
            continue
        if ".gitignore" in names:
            ignores = (*ignores, *_read_ignores(folder / ".gitignore"))
        for entry in entries:
            path = folder / entry.name
            if entry.is_dir(follow_symlinks=False):
                if entry.name not in DEFAULT_EXCLUDES and not _ignored(path, ignores, folder=True):
                    stack.append((path, ignores))
            elif entry.name.endswith(_SUFFIXES) and _is_file(entry) and not _ignored(path, ignores):
                yield path


def _unlisted(folder: Path, why: str) -> Error:
    return Error(relative(folder), 1, f"this folder cannot be listed: {why}; exclude it or mend it")


def _read_ignores(path: Path) -> Iterator[Globs]:
    try:
        # A pipe of this name would be waited for.
        text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    except OSError:
        return
    yield Globs(path.parent, tuple(text.splitlines()))


def _ignored(path: Path, ignores: tuple[Globs, ...], *, folder: bool = False) -> bool:
    # The nearest file that says anything about the path has the last word, as in git.
    for globs in reversed(ignores):
        said = globs.verdict(path, folder=folder)
        if said is not None:
            return said
    return False
