"""Edits at calls picked by chance from the project itself: the tree changes by the edit, and by nothing else."""

from __future__ import annotations

import ast
import random
from pathlib import Path

import pytest

import tflint_gpu
from tflint_gpu.findings import Change
from tflint_gpu.fixes.document import open_document
from tflint_gpu.fixes.places import DeclinedError
from tflint_gpu.source.texts import decode

FILES = sorted(Path(tflint_gpu.__file__).parent.glob("**/*.py"))

CHANGES = {
    "append-method": (("argument", "1"), ("method", "appended")),
    "add-argument": (("name", "added"), ("value", "1")),
}


class Undo(ast.NodeTransformer):
    """Takes the edits out of a tree again."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "appended":
            return node.func.value
        node.keywords = [keyword for keyword in node.keywords if keyword.arg != "added"]
        return node


@pytest.mark.parametrize("kind", CHANGES)
def test_the_tree_changes_by_the_edit_alone(kind: str) -> None:
    chance = random.Random(5)
    made = 0
    for path in chance.sample(FILES, 25):
        raw = path.read_bytes()
        source = decode(path.name, raw)
        tree = source.parse()
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
        for call in chance.sample(calls, min(3, len(calls))):
            document = open_document(path.name, raw)
            try:
                edits = document.edits(Change(kind, source.place(call), CHANGES[kind]), (2, 15))
            except DeclinedError as problem:
                assert "unpacks" in str(problem) or "generator" in str(problem), (path, call.lineno)
                continue
            changed = decode(path.name, document.apply(edits)).parse()
            assert ast.dump(Undo().visit(changed)) == ast.dump(tree), (path, call.lineno)
            made += 1
    assert made > 20
