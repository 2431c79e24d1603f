"""The text for people: colour, and what is offered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import click
import pytest

from tests.report.conftest import evidence
from tflint_gpu.findings import Change, Finding, Fix, Location, Verdict
from tflint_gpu.report import Report
from tflint_gpu.report.full import render
from tflint_gpu.trace.evidence import Spot, VerifiedFix, WhatIf

Samples = dict[str, Callable[[], Report]]


@pytest.mark.parametrize("sample", ["static", "traced", "notebook"])
def test_colour_adds_no_text(sample: str, samples: Samples) -> None:
    report = samples[sample]()
    assert "\x1b[" in render(report)
    assert "\x1b[" not in render(report, colour=False)
    assert click.unstyle(render(report)) == render(report, colour=False)


def text_of(finding: Finding, samples: Samples) -> str:
    static = samples["static"]()
    return render(Report((finding,), static.rules, static.target, 1, texts=static.texts), colour=False)


@pytest.mark.parametrize(
    ("verdict", "offered"),
    [(Verdict.UNMEASURED, True), (Verdict.CONFIRMED, True), (Verdict.MASKED, False), (Verdict.REFUTED, False)],
)
def test_a_fix_is_offered_where_there_is_something_to_gain(
    verdict: Verdict, offered: bool, samples: Samples, finding: Callable[..., Finding]
) -> None:
    call = ("train.py", 11, 9, 11, 23)
    fix = Fix("safe", "append it", (Change("append-method", Location(*call), (("method", "cache"),)),))
    text = text_of(finding("TFG101", call, verdict=verdict, fix=fix), samples)
    assert ("fix: append it (safe, --fix)" in text) is offered
    assert ("1 may be fixed with --fix; --diff shows how." in text) is offered


def test_a_fix_that_the_text_leaves_no_place_for_is_not_offered(
    samples: Samples, finding: Callable[..., Finding]
) -> None:
    item = finding("TFG101", ("train.py", 11))
    fix = Fix("safe", "append it", (Change("append-method", item.location, (("method", "cache"),)),))
    text = text_of(replace(item, fix=fix), samples)
    assert "\n  no fix: no call stands there any more\n" in text
    assert "can be fixed" not in text


def test_a_place_without_a_fix_says_why(samples: Samples, finding: Callable[..., Finding]) -> None:
    item = replace(finding("TFG101", ("train.py", 11)), unfixable="the size comes from a variable")
    assert "\n  no fix: the size comes from a variable\n" in text_of(item, samples)


def test_a_fix_that_was_tried_says_so_at_the_finding(samples: Samples, finding: Callable[..., Finding]) -> None:
    result = WhatIf("missing-prefetch", 40.0, 40.0, 1.0, 3, 0.04, 0.96, 1.04)
    tried = VerifiedFix("TFG101", "missing-prefetch", "safe", (Spot("train.py", 11),), result)
    report = replace(samples["traced"](), evidence=evidence(verified_fixes=(tried,)))
    shown = click.unstyle(render(replace(report, findings=(finding("TFG101", ("train.py", 11)),))))
    assert "\n  tried: not helpful: no gain beyond the noise; no losses of the same steps to compare\n" in shown
    elsewhere = click.unstyle(render(replace(report, findings=(finding("TFG101", ("train.py", 31)),))))
    assert "tried: " not in elsewhere


def test_a_place_that_only_the_trace_saw(samples: Samples, finding: Callable[..., Finding]) -> None:
    assert text_of(finding("TFG101", ("", 1)), samples).startswith("trace TFG101 missing-prefetch warning")


def test_nothing_found_says_so(samples: Samples) -> None:
    static = samples["static"]()
    clean = Report((), static.rules, static.target, 1)
    assert render(clean, colour=False) == "No findings in 1 file, for TensorFlow 2.10 (requirements.txt).\n"
