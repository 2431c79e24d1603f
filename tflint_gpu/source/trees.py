"""Walking syntax trees: what `ast.walk` does, at a fraction of its cost."""

from __future__ import annotations

import ast

#: Fields that hold text, numbers or marks without a place, in whatever node they stand.
_LEAVES = frozenset(
    "arg asname attr conversion ctx id is_async kind level lineno op ops simple tag type_comment".split()
)
_CHILDREN: dict[type[ast.AST], tuple[str, ...]] = {}


def nodes_of(root: ast.AST) -> list[ast.AST]:
    """Return `root` and all nodes below it in the order of `ast.walk`, but for operators and contexts."""
    found = [root]
    for node in found:
        kind = type(node)
        names = _CHILDREN.get(kind)
        if names is None:
            names = _CHILDREN[kind] = tuple(name for name in kind._fields if name not in _LEAVES)
        for name in names:
            value = getattr(node, name, None)
            if isinstance(value, list):
                found += [part for part in value if isinstance(part, ast.AST)]
            elif isinstance(value, ast.AST):
                found.append(value)
    return found
