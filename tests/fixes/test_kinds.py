"""Edits are found by their names, and each says what it does."""

from __future__ import annotations

import pytest

from tflint_gpu.fixes.kinds import all_kinds, load_kind


def test_a_kind_is_a_module_of_its_name() -> None:
    assert {"add-argument", "append-method"} <= set(all_kinds())
    assert load_kind("append-method").__module__ == "tflint_gpu.fixes.kinds.append_method"


@pytest.mark.parametrize("kind", all_kinds())
def test_every_kind_can_be_loaded_and_says_what_it_does(kind: str) -> None:
    assert load_kind(kind).__doc__


def test_a_kind_that_is_not_there() -> None:
    with pytest.raises(LookupError, match="no edit is called 'append_method'"):
        load_kind("append_method")
