"""rdjson: reviewdog's schema, its columns in bytes, and suggestions that are whole fixes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest

from tflint_gpu.findings import Change, Finding, Fix, Location, Severity, Verdict
from tflint_gpu.report import Report, Texts, render

SCHEMA = json.loads((Path(__file__).parents[1] / "schemas" / "rdjson.json").read_text(encoding="utf-8"))

Samples = dict[str, Callable[[], Report]]


def diagnostics(report: Report) -> list[dict]:
    return json.loads(render(report, "rdjson"))["diagnostics"]


@pytest.mark.parametrize("sample", ["static", "traced", "notebook"])
def test_fits_the_schema(sample: str, samples: Samples) -> None:
    validator = jsonschema.validators.validator_for(SCHEMA)(SCHEMA)
    validator.validate(json.loads(render(samples[sample](), "rdjson")))


def test_a_finding_in_a_notebook_stands_at_a_line_of_its_file(samples: Samples) -> None:
    (found,) = diagnostics(samples["notebook"]())
    assert found["location"] == {"path": "photos.ipynb", "range": {"start": {"line": 18}}}


TEXT = "import os\nname = 'größe'; ds = ds.batch(2)\n"


def at_batch(text: str, samples: Samples, verdict: Verdict = Verdict.UNMEASURED) -> dict:
    """Return the diagnostic of a finding at ``ds.batch(2)`` in `text`, whose fix adds an import and a prefetch."""
    lines = text.replace("\r\n", "\n").split("\n")
    where = Location("a.py", 2, lines[1].index("ds.batch") + 1, 2, len(lines[1]) + 1)
    parameters = (("argument", "{tensorflow.data.AUTOTUNE}"), ("method", "prefetch"))
    fix = Fix("safe", "append it", (Change("append-method", where, parameters),))
    finding = Finding(
        "TFG101", "missing-prefetch", "input-pipeline", Severity.HINT, "waits", where, verdict, fix=fix
    )
    report = Report((finding,), (), samples["static"]().target, 1, texts=Texts(given={"a.py": text.encode()}))
    (found,) = diagnostics(report)
    return found


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_suggestion_is_the_whole_fix_and_counts_bytes(newline: str, samples: Samples) -> None:
    text = TEXT.replace("\n", newline)
    (suggestion,) = at_batch(text, samples)["suggestions"]
    raw = text.encode()
    start, end = (offset(raw, suggestion["range"][side]) for side in ("start", "end"))
    assert (
        raw[:start] + suggestion["text"].encode() + raw[end:]
        == ("import os\nimport tensorflow as tf\nname = 'größe'; ds = ds.batch(2).prefetch(tf.data.AUTOTUNE)\n")
        .replace("\n", newline)
        .encode()
    )


def offset(raw: bytes, at: dict[str, int]) -> int:
    return sum(map(len, raw.splitlines(keepends=True)[: at["line"] - 1])) + at["column"] - 1


def test_a_place_counts_bytes(samples: Samples) -> None:
    found = at_batch(TEXT, samples)
    assert found["location"]["range"]["start"] == {
        "line": 2,
        "column": len(b"name = 'gr\xc3\xb6\xc3\x9fe'; ds = ") + 1,
    }
    assert found["severity"] == "INFO"


def test_nothing_is_suggested_where_nothing_is_to_be_gained(samples: Samples) -> None:
    assert "suggestions" not in at_batch(TEXT, samples, Verdict.MASKED)
