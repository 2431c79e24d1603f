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
    # What `children_of` does, written out: a call for each node would make the walk 10 to 40 % longer (measured).
    found = [root]
    for node in found:
        names = _CHILDREN.get(type(node))
        for name in _names_of_children(type(node)) if names is None else names:
            value = getattr(node, name, None)
            if isinstance(value, list):
                found += [part for part in value if isinstance(part, ast.AST)]
            elif isinstance(value, ast.AST):
                found.append(value)
    return found


def children_of(node: ast.AST) -> list[ast.AST]:
    """Return the nodes directly below `node` in the order of `ast.iter_child_nodes`, as `nodes_of` has them."""
    found: list[ast.AST] = []
    names = _CHILDREN.get(type(node))
    for name in _names_of_children(type(node)) if names is None else names:
        value = getattr(node, name, None)
        if isinstance(value, list):
            found += [part for part in value if isinstance(part, ast.AST)]
        elif isinstance(value, ast.AST):
            found.append(value)
    return found


def _names_of_children(kind: type[ast.AST]) -> tuple[str, ...]:
    names = _CHILDREN[kind] = tuple(name for name in kind._fields if name not in _LEAVES)
    return names
