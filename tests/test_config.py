"""Settings: found, read, overlaid by flags; whatever is not as it must be is named with its remedy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tflint_gpu.checks.catalogue import all_pages
from tflint_gpu.checks.pages import Page
from tflint_gpu.config import Settings, load_settings
from tflint_gpu.errors import UserError
from tflint_gpu.findings import Severity

PREFETCH = next(page for page in all_pages() if page.name == "missing-prefetch")


def page(name: str = "tiny-batch", code: str = "TFG201", factor: str = "batch-size", **options: Any) -> Page:
    return Page(code, name, factor, Severity.WARNING, "", ("static",), "none", "0.1.0", Path(), options)


def settings(tmp_path: Path, text: str, **flags: Any) -> Settings:
    (tmp_path / "pyproject.toml").write_text(f"[tool.tflint-gpu]\n{text}")
    return load_settings(tmp_path, {key.replace("_", "-"): value for key, value in flags.items()})


def test_without_a_file_every_rule_is_on_at_its_own_severity(tmp_path: Path) -> None:
    found = load_settings(tmp_path, {}, isolated=True)
    assert found.enables(PREFETCH)
    assert found.severity_of(PREFETCH) is Severity.WARNING
    assert found.fail_on is Severity.WARNING
    assert found.origin is None


@pytest.mark.parametrize(
    ("text", "enabled"),
    [
        ('select = ["TFG101"]', True),
        ('select = ["missing-prefetch"]', True),
        ('select = ["input-pipeline"]', True),
        ('select = ["multi-gpu"]', False),
        ('select = ["multi-gpu"]\nextend-select = ["tfg101"]', True),
        ('ignore = ["TFG101"]', False),
        ('ignore = ["input-pipeline"]', False),
        ('ignore = ["all"]', False),
        ('select = ["TFG101"]\nignore = ["input-pipeline"]', True),
        ('select = ["input-pipeline"]\nignore = ["TFG101"]', False),
        ('select = ["TFG101"]\nignore = ["TFG101"]', False),
    ],
)
def test_the_closest_reference_decides(tmp_path: Path, text: str, enabled: bool) -> None:
    assert settings(tmp_path, text).enables(PREFETCH) is enabled


def test_flags_add_to_the_file_and_select_starts_anew(tmp_path: Path) -> None:
    text = 'ignore = ["TFG101"]'
    assert not settings(tmp_path, text, ignore=("multi-gpu",)).enables(PREFETCH)
    assert settings(tmp_path, text, select=("TFG101",)).enables(PREFETCH)
    assert settings(tmp_path, 'tensorflow = "2.10"', tensorflow="2.15").tensorflow == "2.15"


def test_severity_by_the_closest_reference(tmp_path: Path) -> None:
    found = settings(tmp_path, '[tool.tflint-gpu.severity]\nall = "hint"\nTFG101 = "error"\n')
    assert found.severity_of(PREFETCH) is Severity.ERROR
    assert found.severity_of(page()) is Severity.HINT


@pytest.mark.parametrize(("text", "level"), [("error", Severity.ERROR), ("hint", Severity.HINT), ("never", None)])
def test_fail_on(tmp_path: Path, text: str, level: Severity | None) -> None:
    assert settings(tmp_path, f'fail-on = "{text}"').fail_on is level


def test_nearest_file_upward_wins_and_unrelated_ones_are_passed_over(tmp_path: Path) -> None:
    deep = tmp_path / "a/b"
    deep.mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text('[tool.tflint-gpu]\ntensorflow = "2.9"\n')
    (tmp_path / "a/pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert load_settings(deep, {}).origin == tmp_path / "pyproject.toml"
    (tmp_path / "a/tflint-gpu.toml").write_text('tensorflow = "2.12"\n')
    assert load_settings(deep, {}).tensorflow == "2.12"
    assert load_settings(deep, {}, isolated=True).tensorflow is None


def test_patterns_are_relative_to_the_file_that_states_them(tmp_path: Path) -> None:
    found = settings(tmp_path, 'exclude = ["/old"]\n[tool.tflint-gpu.per-file-ignores]\n"demo/" = ["all"]\n')
    assert found.exclude[0].covers(tmp_path / "old/x.py")
    assert not found.exclude[0].covers(tmp_path / "sub/old/x.py")
    assert found.ignored_in(tmp_path / "demo/x.py", PREFETCH)
    assert not found.ignored_in(tmp_path / "x.py", PREFETCH)
    assert not found.ignored_in(Path("/elsewhere/demo/x.py"), PREFETCH)


def test_per_file_ignores_as_a_flag(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = load_settings(tmp_path, {"per-file-ignores": ("demo/*.py:TFG101,multi-gpu",)})
    assert found.ignored_in(tmp_path / "demo/x.py", PREFETCH)
    assert not found.ignored_in(tmp_path / "demo/x.py", page())


def test_inline_toml_and_files_by_flag(tmp_path: Path) -> None:
    other = tmp_path / "other.toml"
    other.write_text('tensorflow = "2.8"\n')
    found = settings(tmp_path, 'tensorflow = "2.9"', config=(str(other), 'fail-on = "error"'))
    assert (found.tensorflow, found.fail_on) == ("2.8", Severity.ERROR)
    assert settings(tmp_path, "", config=('severity.TFG101 = "info"',)).severity_of(PREFETCH) is Severity.INFO


@pytest.fixture
def with_options(monkeypatch: pytest.MonkeyPatch) -> Page:
    """Let the catalogue hold one rule with options."""
    only = page(floor=16, share=0.03, strict=False, names=["a"])
    monkeypatch.setattr("tflint_gpu.checks.catalogue.builtin_pages", lambda: (only,))
    return only


def test_options_overlay_the_defaults_of_the_page(tmp_path: Path, with_options: Page) -> None:
    found = settings(
        tmp_path,
        "[tool.tflint-gpu.rules.tiny-batch]\nfloor = 8\nshare = 1\n",
        config=("rules.TFG201.strict = true",),
    )
    assert found.options_of(with_options) == {"floor": 8, "share": 1, "strict": True, "names": ["a"]}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("floor = 8.5", "whole number"),
        ("floor = true", "whole number"),
        ("floor = -8", "0 or more"),
        ("share = -0.1", "0 or more"),
        ("share = nan", "0 or more"),
        ("share = 'x'", "a number"),
        ("strict = 1", "true or false"),
        ("names = 'a'", "a list"),
        ("flor = 8", "did you mean 'floor'"),
    ],
)
def test_options_must_be_of_the_kind_of_their_default(
    tmp_path: Path, with_options: Page, text: str, words: str
) -> None:
    with pytest.raises(UserError, match=words):
        settings(tmp_path, f"[tool.tflint-gpu.rules.tiny-batch]\n{text}\n")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("selct = []", "unknown key 'selct'; did you mean 'select'"),
        ("target-version = 3", "unknown key 'target-version'"),
        ('select = ["missing-prefech"]', "unknown rule 'missing-prefech'; did you mean 'missing-prefetch'"),
        ('select = ["TFG2001"]', "unknown rule 'TFG2001'; did you mean 'TFG20"),
        ('ignore = "TFG101"', "must be a list of strings"),
        ("tensorflow = 2.10", r"version in quotes"),
        ('tensorflow = "newest"', "version in quotes"),
        ('fail-on = "fatal"', "'fatal' is none of error, warning"),
        ('[tool.tflint-gpu.severity]\nTFG101 = "loud"', "'loud' is none of"),
        ("[tool.tflint-gpu.rules.missing-prefech]\nx = 1", "did you mean 'missing-prefetch'"),
        ("[tool.tflint-gpu.rules]\nTFG101 = 1", "must be a table"),
        ("severity = 3", "must be a table"),
    ],
)
def test_what_is_wrong_is_named_with_the_file_and_the_remedy(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(UserError, match=words) as caught:
        settings(tmp_path, text)
    assert str(caught.value).startswith(str(tmp_path / "pyproject.toml"))
    assert "\n" not in str(caught.value)


def test_a_table_of_nearly_the_right_name_is_told(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.tflint_gpu]\nselect = ["TFG101"]\n')
    with pytest.raises(UserError, match=r"did you mean \[tool\.tflint-gpu\]"):
        load_settings(tmp_path, {})
    (tmp_path / "tflint-gpu.toml").write_text('[tool.tflint-gpu]\nselect = ["TFG101"]\n')
    with pytest.raises(UserError, match=r"'tool'; write the keys without \[tool\.tflint-gpu\]"):
        load_settings(tmp_path, {})


def test_torn_toml_is_told_but_only_where_it_is_ours(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[project\n")
    assert load_settings(tmp_path, {}).origin in (None, *[p / "pyproject.toml" for p in tmp_path.parents])
    (tmp_path / "pyproject.toml").write_text("[tool.tflint-gpu\n")
    with pytest.raises(UserError, match="not valid TOML"):
        load_settings(tmp_path, {})


def test_a_flag_that_is_no_toml_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="--config"):
        load_settings(tmp_path, {"config": ("loud",)}, isolated=True)
    with pytest.raises(UserError, match="cannot be read"):
        load_settings(tmp_path, {"config": (str(tmp_path / "gone.toml"),)}, isolated=True)
    with pytest.raises(UserError, match="PATTERN:RULE"):
        load_settings(tmp_path, {"per-file-ignores": ("TFG101",)}, isolated=True)
