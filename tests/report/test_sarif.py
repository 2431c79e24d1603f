"""SARIF: the OASIS schema, and what code scanning makes of a log."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest

from tests.report.conftest import CELLS
from tflint_gpu.findings import Location
from tflint_gpu.report import Report, render

SCHEMA = json.loads((Path(__file__).parents[1] / "schemas" / "sarif-2.1.0.json").read_text(encoding="utf-8-sig"))

Samples = dict[str, Callable[[], Report]]


def run_of(report: Report) -> dict:
    (run,) = json.loads(render(report, "sarif"))["runs"]
    return run


@pytest.mark.parametrize("sample", ["static", "traced", "notebook"])
def test_fits_the_schema(sample: str, samples: Samples) -> None:
    validator = jsonschema.validators.validator_for(SCHEMA)(SCHEMA)
    validator.validate(json.loads(render(samples[sample](), "sarif")))


def test_paths_are_relative_to_a_root(samples: Samples) -> None:
    run = run_of(samples["static"]())
    place = run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert place == {"uri": "train.py", "uriBaseId": "SRCROOT"}
    assert run["originalUriBaseIds"]["SRCROOT"]["uri"].endswith("/")


def test_a_path_with_blanks_is_a_uri(samples: Samples, finding: Callable) -> None:
    static = samples["static"]()
    spaced = Report((finding("TFG101", ("my code/ü.py", 1)),), static.rules, static.target, 1)
    place = run_of(spaced)["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "my%20code/%C3%BC.py"


def test_all_enabled_rules_are_listed_with_their_pages(samples: Samples) -> None:
    rules = run_of(samples["notebook"]())["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == ["TFG101", "TFG102", "TFG105", "TFG501"]
    assert rules[0]["fullDescription"]["text"] == "Reports missing-prefetch where it stands."
    assert "## Why the GPU waits" in rules[0]["help"]["markdown"]


def test_related_places_are_linked_from_the_message(samples: Samples) -> None:
    first = run_of(samples["static"]())["results"][0]
    assert first["message"]["text"].endswith("See: [this fit draws from it](1).")
    assert first["relatedLocations"][0]["id"] == 1


def test_a_fix_replaces_nothing_and_inserts(samples: Samples) -> None:
    first = run_of(samples["static"]())["results"][0]
    (change,) = first["fixes"][0]["artifactChanges"]
    (replacement,) = change["replacements"]
    assert replacement["deletedRegion"] == {"startLine": 12, "startColumn": 19, "endLine": 12, "endColumn": 19}


def test_a_notebook_shows_the_line_of_its_json(samples: Samples) -> None:
    report = samples["notebook"]()
    (result,) = run_of(report)["results"]
    line = result["locations"][0]["physicalLocation"]["region"]["startLine"]
    shown = (report.texts.root / "photos.ipynb").read_text(encoding="utf-8").split("\n")[line - 1]
    assert shown.strip() == json.dumps(CELLS[1]["source"][2])
    assert result["locations"][0]["logicalLocations"][0]["name"] == "cell 2, line 3"
    assert "fixes" not in result


def test_suppressed_findings_stay_visible_as_such(samples: Samples) -> None:
    results = run_of(samples["static"]())["results"]
    assert [result.get("suppressions") for result in results] == [None, None, None, [{"kind": "inSource"}]]


def test_an_unreadable_file_is_a_notification(samples: Samples) -> None:
    (invocation,) = run_of(samples["static"]())["invocations"]
    assert invocation["executionSuccessful"] is False
    (told,) = invocation["toolExecutionNotifications"]
    assert told["locations"][0]["physicalLocation"]["region"] == {"startLine": 3}


def test_fingerprints_are_unique(samples: Samples) -> None:
    results = run_of(samples["static"]())["results"]
    names = {result["partialFingerprints"]["primaryLocationLineHash"] for result in results}
    assert len(names) == len(results)


def test_what_only_the_trace_saw_needs_no_place(samples: Samples, finding: Callable) -> None:
    static = samples["static"]()
    placeless = Report((finding("TFG101", ("", 1)),), static.rules, static.target, 1)
    assert run_of(placeless)["results"][0]["locations"] == []
    assert Location("", 1).path == ""
