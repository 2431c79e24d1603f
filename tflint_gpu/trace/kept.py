"""The evidence and the profile beside it: put in their places whole, and never over anything else."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from tflint_gpu.errors import UserError
from tflint_gpu.places import obstacle

#: The folder that a trace makes for itself, and may fill as it likes.
OWN = ".tflint-gpu"

#: What a profile's folder holds, and nothing beside it.
_INSIDE = {"plugins", "events.out.tfevents"}

#: How every evidence file starts, of whatever schema.
_EVIDENCE = re.compile(rb'\s*\{\s*"schema"\s*:\s*\d+\s*,\s*"tool"\s*:\s*"(?:tflint-gpu )?\d')


def profile_beside(evidence: Path) -> Path:
    """Return where the profile of an evidence file is kept: ``profile`` in a trace's own folder, else by its name.

    A folder ``profile`` beside evidence that lies elsewhere is likely to be the user's.
    """
    return evidence.with_name("profile") if evidence.parent.name == OWN else evidence.with_suffix(".profile")


def refuse_strangers(file: Path) -> None:
    """Raise `UserError` where `file` is there and holds something else than evidence: it would be replaced.

    A device or a pipe is something else too: a file renamed onto it takes its place, and root may do that.
    Raises it too where evidence could not be written: nobody shall run for minutes to learn that.
    """
    try:
        if why := obstacle(draft_of(file.resolve())):
            raise UserError(f"{file}: cannot write the evidence: {why}")
        if not (file.exists() or file.is_symlink()):
            return
        strange = file.exists() and not file.is_file()
        start = b"" if strange or not file.exists() else _start(file)
    except (OSError, RuntimeError) as problem:
        raise UserError(f"{file}: cannot write the evidence: {_why(problem)}") from None
    if strange or (start and not _EVIDENCE.match(start)):
        raise UserError(f"{file}: there already, and not evidence; move it away, or name another --evidence-out")


def _start(file: Path) -> bytes:
    with file.open("rb") as stream:
        return stream.read(200)


def put(file: Path, content: bytes) -> None:
    """Write evidence at `file`; a reader never sees half of it, and a link stays one.

    Raises `UserError` where it cannot be written or something else is in that place.
    """
    refuse_strangers(file)
    try:
        target = file.resolve()
        draft = draft_of(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            draft.write_bytes(content)
            draft.replace(target)
        finally:
            with contextlib.suppress(OSError):
                draft.unlink()
    except (OSError, RuntimeError) as problem:
        raise UserError(f"{file}: cannot write the evidence: {_why(problem)}") from None


def _why(problem: Exception) -> str:
    # Before Python 3.13 a link that leads to itself is a RuntimeError.
    return getattr(problem, "strerror", None) or "a symbolic link that leads to itself"


def draft_of(place: Path) -> Path:
    """Return where to make what goes to `place`: beside it, and another path in every process."""
    return place.with_name(f".{place.name}.{os.getpid()}.part")


def refuse_others(folder: Path) -> None:
    """Raise `UserError` where `folder` is there and is no profile: it would be replaced."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        strange = [entry.name for entry in folder.iterdir() if not entry.name.startswith(tuple(_INSIDE))]
        if not strange:
            return
    if folder.exists() or folder.is_symlink():
        raise UserError(
            f"{folder}: in the place of the profile, and not one; move it away, or name another --evidence-out"
        )


@contextlib.contextmanager
def kept(folder: Path) -> Iterator[Path]:
    """Give a path to make a profile at; at the end of the ``with`` block it takes the place of `folder`.

    Nothing of it stays where the block fails. Raises `UserError` where something else is in that place.
    """
    refuse_others(folder)
    draft = draft_of(folder)
    draft.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield draft
        if draft.is_dir():
            if folder.is_dir():
                shutil.rmtree(folder)
            draft.rename(folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
