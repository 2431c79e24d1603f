"""The profile that is kept beside the evidence: put in its place whole, and never over anything else."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

from tflint_gpu.errors import UserError

#: The folder that a trace makes for itself, and may fill as it likes.
OWN = ".tflint-gpu"

#: What a profile's folder holds, and nothing beside it.
_INSIDE = {"plugins", "events.out.tfevents"}


def profile_beside(evidence: Path) -> Path:
    """Return where the profile of an evidence file is kept: ``profile`` in a trace's own folder, else by its name.

    A folder ``profile`` beside evidence that lies elsewhere is likely to be the user's.
    """
    return evidence.with_name("profile") if evidence.parent.name == OWN else evidence.with_suffix(".profile")


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
    draft = folder.with_name(f".{folder.name}.part")
    draft.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield draft
        if draft.is_dir():
            if folder.is_dir():
                shutil.rmtree(folder)
            draft.rename(folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
