"""Walking trees: the nodes of `ast.walk` in its order, without those that have no place."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tflint_gpu.source.trees import nodes_of

PACKAGE = Path(__file__).parents[2] / "tflint_gpu"


@pytest.mark.parametrize("name", ["program/folding.py", "program/patterns.py", "lint/workers.py", "cli/check.py"])
def test_nodes_come_as_ast_walk_gives_them(name: str) -> None:
    tree = ast.parse((PACKAGE / name).read_text(encoding="utf-8"))
    left_out = (ast.expr_context, ast.operator, ast.unaryop, ast.cmpop)

    walked = [node for node in ast.walk(tree) if not isinstance(node, left_out)]
    found = [node for node in nodes_of(tree) if not isinstance(node, ast.boolop)]

    assert found == [node for node in walked if not isinstance(node, ast.boolop)]
    assert len(found) > 100


def test_every_kind_of_statement_is_walked() -> None:
    text = (
        "import os as o\nfrom sys import path\nglobal a\nasync def f(x: int = 1, *y, z=2, **k) -> int:\n"
        "    async with x as y: await z\n    match x:\n        case {'a': 1, **r} | [*s]: pass\n"
        "    try: pass\n    except* ValueError as e: raise\n    return {**x, 'b': f'{y!r:>{z}}'}\n"
    )
    named = {type(node).__name__ for node in nodes_of(ast.parse(text))}

    assert named >= {"alias", "arg", "withitem", "MatchMapping", "MatchStar", "ExceptHandler", "FormattedValue"}
