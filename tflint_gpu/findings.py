"""The words that every room shares: a finding, where it stands, how loud it is, what a trace says of it."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass, field, replace
from typing import Any


class Severity(enum.IntEnum):
    """How loud a finding is; ordered, so that ``max`` and thresholds work."""

    HINT = 0
    INFO = 1
    WARNING = 2
    ERROR = 3

    @classmethod
    def parse(cls, text: str) -> Severity:
        """Return the severity named `text` (any case); raises `ValueError` for any other word."""
        try:
            return cls[text.upper()]
        except KeyError:
            raise ValueError(f"unknown severity {text!r}: use error, warning, info or hint") from None

    def __str__(self) -> str:
        return self.name.lower()


class Verdict(enum.Enum):
    """What evidence says of a finding; `UNMEASURED` where there is none."""

    UNMEASURED = "unmeasured"
    CONFIRMED = "confirmed"
    REFUTED = "refuted"
    MASKED = "masked"
    NOT_EXERCISED = "not-exercised"
    MINOR = "minor"
    OBSERVED = "observed"

    def __str__(self) -> str:
        return self.value


#: A finding with one of these verdicts is never louder than `Severity.INFO`.
QUIET_VERDICTS = frozenset({Verdict.REFUTED, Verdict.MASKED, Verdict.MINOR})


@dataclass(frozen=True, slots=True, order=True)
class Location:
    """A range in a source file.

    Lines and columns count from 1, columns in characters; the end column is exclusive, as editors count it.
    In a notebook lines count inside `cell`, which counts all cells from 1 as Jupyter stores them.
    `path` is relative to the folder the run was started in, with forward slashes.
    """

    path: str
    line: int
    column: int = 1
    end_line: int = 0
    end_column: int = 0
    cell: int | None = None

    def __post_init__(self) -> None:
        if not self.end_line:
            object.__setattr__(self, "end_line", self.line)
        if not self.end_column:
            object.__setattr__(self, "end_column", self.column)

    def __str__(self) -> str:
        cell = f":cell {self.cell}" if self.cell is not None else ""
        return f"{shown_path(self.path)}{cell}:{self.line}:{self.column}"


#: What ends a line, tells a terminal something, or stands for a byte that is no UTF-8.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\udc80-\udcff]")


def shown_path(path: str) -> str:
    """Return `path` for a line of text: a name with a line feed or an escape in it is not two lines, nor red."""
    return _CONTROL.sub(_escaped, path)


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    # Python reads the byte 0xff of a name as the character U+DCFF.
    return f"\\x{code - 0xDC00:02x}" if code >= 0xDC80 else found[0].encode("unicode_escape").decode()


@dataclass(frozen=True, slots=True)
class Related:
    """A second place that explains a finding, with a few words on its part in it."""

    location: Location
    message: str


@dataclass(frozen=True, slots=True)
class Measure:
    """One figure of the evidence behind a verdict; `unit` is an SI symbol, ``"1"`` for a share."""

    metric: str
    value: float
    unit: str = "1"


@dataclass(frozen=True, slots=True)
class Impact:
    """The share of step time (0..1) that a fix gives back, and how that is known."""

    step_share: float
    basis: str


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace the text of `location` by `text`."""

    location: Location
    text: str


@dataclass(frozen=True, slots=True)
class Change:
    """What a check asks the fixes room to do: an edit by name, at what stands at `location`.

    Checks state the change, `tflint_gpu.fixes` knows how to write it without moving another byte. `kind` names a
    module of `tflint_gpu.fixes.kinds`, `parameters` are what it needs to know. `places` are further places of the
    same file that the edit is about, such as where something is moved to.
    """

    kind: str
    location: Location
    parameters: tuple[tuple[str, str], ...] = ()
    places: tuple[Location, ...] = ()


@dataclass(frozen=True, slots=True)
class Fix:
    """A repair: `safety` is ``"safe"`` (results and order unchanged) or ``"unsafe"``.

    All of its `changes` are made, in one file or in several, or none.
    """

    safety: str
    title: str
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule at a place."""

    code: str
    name: str
    factor: str
    severity: Severity
    message: str
    location: Location
    verdict: Verdict = Verdict.UNMEASURED
    related: tuple[Related, ...] = ()
    evidence: tuple[Measure, ...] = ()
    impact: Impact | None = None
    fix: Fix | None = None
    #: Why the rule, which has a fix, has none here; "" where it has one, or never has.
    unfixable: str = ""
    #: Why a trace left the verdict at `UNMEASURED`; "" without a trace.
    reason: str = ""
    #: Dotted name of the enclosing function or class, "" at module level; part of the fingerprint.
    qualname: str = ""
    #: What the check knows and its own `judge` needs again (a stage's op, a function's name); never rendered.
    detail: dict[str, Any] = field(default_factory=dict, hash=False, compare=False)

    def with_verdict(
        self,
        verdict: Verdict,
        *,
        evidence: tuple[Measure, ...] = (),
        impact: Impact | None = None,
        severity: Severity | None = None,
        message: str | None = None,
    ) -> Finding:
        """Return this finding as evidence left it; a quiet verdict lowers it to `info` at most."""
        loudness = self.severity if severity is None else severity
        if verdict in QUIET_VERDICTS:
            loudness = min(loudness, Severity.INFO)
        return replace(
            self,
            verdict=verdict,
            evidence=evidence,
            impact=impact,
            severity=loudness,
            message=message or self.message,
        )
