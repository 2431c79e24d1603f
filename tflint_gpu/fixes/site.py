"""What an edit is given: the script, the place in it, and the words that the check handed over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tflint_gpu.fixes.names import named
from tflint_gpu.fixes.places import Found, Script, Span, Splice, find

if TYPE_CHECKING:
    import libcst


@dataclass(frozen=True)
class Site:
    """The place of one edit.

    `span` is the range of the change's location, `others` those of its further places; lines count from 1 and
    columns from 0, in `script`. `tensorflow` is the version that the code is meant for.
    """

    script: Script
    span: Span
    parameters: Mapping[str, str]
    tensorflow: tuple[int, int]
    others: tuple[Span, ...] = ()

    def call(self, span: Span | None = None) -> Found[libcst.Call]:
        """Return the call that stands at `span` (default: at the site); raises `DeclinedError` where none does."""
        import libcst

        start, end = span or self.span
        return find(self.script, start, end, libcst.Call)

    def text(self, parameter: str, line: int = 0) -> tuple[str, list[Splice]]:
        """Return the text of `parameter`, "" where there is none, and the imports that it needs.

        ``{tensorflow.data.AUTOTUNE}`` in it becomes the spelling of that name which works at `line` (default:
        where the site ends). Raises `DeclinedError` where there is none.
        """
        return self.spelled(self.parameters.get(parameter, ""), line)

    def spelled(self, text: str, line: int = 0) -> tuple[str, list[Splice]]:
        """Return `text` with its names in braces spelled as this script does, and the imports that they need."""
        return named(text, self.script, line or self.span[1][0], self.tensorflow)

    def offsets(self, start: tuple[int, int], end: tuple[int, int]) -> tuple[int, int]:
        """Return the offsets of a range in the script's text."""
        return self.script.offset(*start), self.script.offset(*end)
