"""Patterns in gitignore's dialect, the only one that settings, flags and ignore files speak."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec


@dataclass(frozen=True)
class Globs:
    """Patterns and the absolute folder `root` that they are relative to: where the file that states them lies."""

    root: Path
    patterns: tuple[str, ...]

    @cached_property
    def _spec(self) -> GitIgnoreSpec:
        from pathspec import GitIgnoreSpec

        return GitIgnoreSpec.from_lines(self.patterns)

    def covers(self, path: Path, *, folder: bool = False) -> bool:
        """Say whether the absolute `path` matches; what lies outside `root` never does."""
        return self.verdict(path, folder=folder) is True

    def verdict(self, path: Path, *, folder: bool) -> bool | None:
        """Return True where `path` matches, False where a ``!`` pattern takes it back, None where none speaks."""
        try:
            inside = path.relative_to(self.root).as_posix()
        except ValueError:
            return None
        return self._spec.check_file(f"{inside}/" if folder else inside).include
