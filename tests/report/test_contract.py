"""The JSON contract: its schema, and figures that a reader of it relies on."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from tests.report.conftest import evidence
from tflint_gpu.report import Report, Texts, render
from tflint_gpu.trace.evidence import Losses, Spot, VerifiedFix, WhatIf

SCHEMA = json.loads((Path(__file__).parents[1] / "schemas" / "contract.json").read_text(encoding="utf-8"))

Samples = dict[str, Callable[[], Report]]


@pytest.mark.parametrize("sample", ["static", "traced", "notebook"])
def test_fits_its_schema(sample: str, samples: Samples) -> None:
    jsonschema.validate(json.loads(render(samples[sample](), "json")), SCHEMA)


def test_schema_is_not_satisfied_by_less(samples: Samples) -> None:
    whole = json.loads(render(samples["traced"](), "json"))
    for part in (whole, whole["findings"][0], whole["trace"], whole["trace"]["steps"][0]):
        key, value = next(iter(part.items()))
        del part[key]
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(whole, SCHEMA)
        part[key] = value


def test_edits_of_a_fix_are_worked_out(samples: Samples) -> None:
    (first, *_) = json.loads(render(samples["static"](), "json"))["findings"]
    (edit,) = first["fix"]["edits"]
    assert edit["text"] == "\n        .prefetch(tf.data.AUTOTUNE)"
    assert (edit["path"], edit["line"], edit["column"]) == ("train.py", 12, 19)
    assert (edit["end_line"], edit["end_column"]) == (12, 19)
    assert first["fix"]["declined"] is None


def test_edits_in_a_notebook_count_inside_the_cell(samples: Samples) -> None:
    (first,) = json.loads(render(samples["notebook"](), "json"))["findings"]
    (edit,) = first["fix"]["edits"]
    assert (edit["cell"], edit["line"], edit["column"]) == (2, 3, 14)
    assert edit["text"] == ", num_parallel_calls=tf.data.AUTOTUNE"


def test_a_fix_that_cannot_be_made_says_why(samples: Samples) -> None:
    report = samples["static"]()
    gone = Report(report.findings[:1], report.rules, report.target, 3, texts=Texts(Path("nowhere")))
    (first,) = json.loads(render(gone, "json"))["findings"]
    assert first["fix"]["edits"] == []
    assert first["fix"]["declined"] == "train.py cannot be read"


def test_a_verified_fix_fits_the_schema(samples: Samples) -> None:
    result = WhatIf("missing-prefetch", 20.0, 40.0, 2.0, 3, 0.04, 1.9, 2.1)
    losses = Losses((1, 2), (1.0, 0.5), (1.0, 0.5), 0.0, 0.0, agree=True)
    fix = VerifiedFix("TFG101", "missing-prefetch", "safe", (Spot("train.py", 11),), result, losses)
    broken = replace(fix, result=None, losses=None, note="the fixed program does not run: the run failed")
    traced = samples["traced"]()
    whole = json.loads(render(replace(traced, evidence=evidence(verified_fixes=(fix, broken))), "json"))
    jsonschema.validate(whole, SCHEMA)
    assert [each["helpful"] for each in whole["trace"]["verified_fixes"]] == [True, False]
    assert whole["trace"]["verified_fixes"][0]["result"]["speedup"] == 2.0


def test_summary_counts_severities(samples: Samples) -> None:
    summary = json.loads(render(samples["static"](), "json"))["summary"]
    assert summary == {"files": 3, "error": 0, "warning": 2, "info": 0, "hint": 1}


def test_no_gpu_gives_no_busy_share(samples: Samples) -> None:
    report = samples["static"]()
    on_cpu = Report((), report.rules, report.target, 3, evidence(gpu=False))
    assert json.loads(render(on_cpu, "json"))["trace"]["gpu_busy_share"] is None
