"""Workflow commands: escaped, ranked and no more than GitHub shows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tflint_gpu.findings import Finding, Severity, Verdict
from tflint_gpu.report import Report, render

Samples = dict[str, Callable[[], Report]]


def commands(samples: Samples, *findings: Finding) -> list[str]:
    static = samples["static"]()
    return render(Report(findings, static.rules, static.target, 1), "github").splitlines()


def test_signs_that_end_a_property_or_a_command_are_escaped(
    samples: Samples, finding: Callable[..., Finding]
) -> None:
    (line,) = commands(samples, finding("TFG101", ("a,b:c%.py", 1), "50 % of it,\r\nor more: ::set-env::"))
    assert line.startswith("::warning file=a%2Cb%3Ac%25.py,line=1,")
    assert line.endswith("50 %25 of it,%0D%0Aor more: ::set-env::")


def test_columns_only_on_one_line(samples: Samples, finding: Callable[..., Finding]) -> None:
    one, several = commands(
        samples, finding("TFG101", ("a.py", 1, 3, 1, 9)), finding("TFG101", ("a.py", 2, 3, 4, 9))
    )
    assert ",line=1,endLine=1,col=3,endColumn=9," in one
    assert ",line=2,endLine=4,title=" in several


def test_a_cell_is_named_in_the_text_alone(samples: Samples, finding: Callable[..., Finding]) -> None:
    (line,) = commands(samples, finding("TFG101", ("a.ipynb", 3, 1, 3, 9, 2)))
    assert "line=" not in line
    assert "::a.ipynb:cell 2:3:1 [unmeasured]" in line


def test_loud_and_proven_come_first(samples: Samples, finding: Callable[..., Finding]) -> None:
    quiet = finding("TFG101", ("a.py", 1), severity=Severity.INFO)
    suspicion = finding("TFG101", ("b.py", 1))
    proven = finding("TFG101", ("c.py", 1), verdict=Verdict.CONFIRMED)
    error = finding("TFG501", ("d.py", 1))
    lines = commands(samples, quiet, suspicion, proven, error)
    assert [line.split("file=")[1][0] for line in lines] == ["d", "c", "b", "a"]


def test_what_the_limit_cuts_is_counted(samples: Samples, finding: Callable[..., Finding]) -> None:
    first = finding("TFG101", ("a.py", 1))
    many = [replace(first, location=replace(first.location, line=line, end_line=line)) for line in range(1, 13)]
    info = [replace(item, severity=Severity.INFO) for item in many[:11]]
    *lines, last = commands(samples, *many, *info)
    assert sum(line.startswith("::warning ") for line in lines) == 10
    assert sum(line.startswith("::notice ") for line in lines) == 10
    assert last == (
        "Not annotated, as GitHub shows 10 of a level: 2 warnings, 1 notice. --output sarif:FILE has them all."
    )
