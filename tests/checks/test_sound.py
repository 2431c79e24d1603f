"""The programs of ``sound.md``: for each reason why a rule keeps silent, one that has it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.checks.conftest import Analyse, named
from tflint_gpu.checks.catalogue import all_pages
from tflint_gpu.findings import Severity

TEXT = Path(__file__).with_name("sound.md").read_text(encoding="utf-8")
_HEAD, *_PARTS = re.split(r"^## (.*)\n", TEXT, flags=re.MULTILINE)
_BLOCK = re.compile(r"^```python *([^\n]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_REASON = re.compile(r"^- (.*)\n", re.MULTILINE)
#: The lines that every program begins with, but one that says that it stands alone.
HEAD = _BLOCK.findall(_HEAD)[0][1]
RULES = dict(zip(_PARTS[::2], _PARTS[1::2], strict=True))


def programs() -> Iterator[object]:
    for rule, part in RULES.items():
        _, *reasons = _REASON.split(part)
        for reason, body in zip(reasons[::2], reasons[1::2], strict=True):
            (options, text), *others = _BLOCK.findall(body)
            assert not others, reason
            yield pytest.param(rule, options.split(), text, id=f"{rule}-{reason[:40]}")


@pytest.mark.parametrize(("rule", "options", "text"), list(programs()))
def test_no_rule_accuses(analyse: Analyse, rule: str, options: list[str], text: str) -> None:
    version = next((option.partition("=")[2] for option in options if "=" in option), "2.21")
    loudest = next(
        (Severity[option.upper()] for option in options if option.upper() in Severity.__members__), None
    )
    found = named(analyse(text if "alone" in options else HEAD + text, version, (rule,)), rule)

    assert [finding for finding in found if loudest is None or finding.severity > loudest] == []


def test_the_rules_are_known() -> None:
    assert set(RULES) <= {page.name for page in all_pages()}
