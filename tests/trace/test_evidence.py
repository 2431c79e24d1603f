"""The evidence file: what other programs may rely on, and what is refused."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.report.conftest import evidence
from tests.trace.conftest import Tracing
from tests.trace.profile.spaces import SHARED, needs_profiles
from tflint_gpu.errors import UserError
from tflint_gpu.trace.evidence import SCHEMA, SCHEMA_FILE, Evidence, load, save
from tflint_gpu.trace.importer import import_profile

ROOT = Path(__file__).parents[2]


def described(made: Evidence, folder: Path) -> None:
    """Hold an evidence file to the schema; raises `jsonschema.ValidationError` where it does not fit."""
    save(made, folder / "evidence.json")
    schema = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(json.loads((folder / "evidence.json").read_text(encoding="utf-8")), schema)


def test_the_schema_is_that_of_the_types() -> None:
    made = runpy.run_path(str(ROOT / "scripts" / "evidence_schema.py"))["text"]()
    assert SCHEMA_FILE.read_text(encoding="utf-8") == made, "run `python scripts/evidence_schema.py`"


def test_every_key_of_the_file_is_documented() -> None:
    page = (ROOT / "docs" / "evidence.md").read_text(encoding="utf-8")
    keys = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))["$defs"]["Evidence"]["properties"]
    assert [key for key in keys if f"`{key}`" not in page] == []


def test_made_evidence_fits(tmp_path: Path) -> None:
    described(evidence(), tmp_path)


@needs_profiles
@pytest.mark.parametrize("folder", ["v100x8-bert", "v100x8-resnet-input-bound", "tf221-cpu/jit", "tf22-no-xplane"])
def test_imported_evidence_fits(folder: str, tmp_path: Path) -> None:
    described(import_profile(SHARED / folder).evidence, tmp_path)


@pytest.mark.trace
def test_traced_evidence_fits(traced: Tracing, tmp_path: Path) -> None:
    described(traced("fit_with_everything.py", str(tmp_path))[0], tmp_path)
    described(traced("short_loop.py")[0], tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"schema": 2},
        {"steps": [{"step_ms": 1.0}]},
        {"window": {"seen_as": "fit"}},
        {"sources": {"a.py": "no digest"}},
        {"lines": {"a.py": "0123456"}},
        {"copies": []},
    ],
)
def test_what_is_no_evidence_does_not_fit(change: dict[str, Any], tmp_path: Path) -> None:
    save(evidence(), tmp_path / "evidence.json")
    schema = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))
    wrong = json.loads((tmp_path / "evidence.json").read_text(encoding="utf-8")) | change
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(wrong, schema)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"schema": 0, "whatever": []}', "evidence of schema 0, and this version reads 1; trace again"),
        ('{"schema": 2, "steps": {"new": "layout"}}', "evidence of schema 2, .* update tflint-gpu here"),
        ('{"findings": []}', "not an evidence file of tflint-gpu"),
        ('{"schema": 1}', "not an evidence file of tflint-gpu"),
        ("[]", "not an evidence file of tflint-gpu"),
        ("", "not an evidence file of tflint-gpu"),
        ("\xff", "not an evidence file of tflint-gpu"),
    ],
)
def test_files_of_other_versions_and_other_files(text: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "evidence.json"
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(UserError, match=f"{file}: {words}") as told:
        load(file)
    assert "\n" not in str(told.value)


def test_keys_that_are_new_do_no_harm(tmp_path: Path) -> None:
    file = tmp_path / "evidence.json"
    save(evidence(), file)
    plain = json.loads(file.read_text(encoding="utf-8"))
    assert plain["schema"] == SCHEMA
    file.write_text(json.dumps({**plain, "of a later version": 1}), encoding="utf-8")
    assert load(file) == evidence()
