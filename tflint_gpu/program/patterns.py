"""``match``: which cases a value fits, and what they name of it."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from tflint_gpu.program.values import Const, Items, Mapping, Unknown, Value


def names_in(pattern: ast.pattern) -> dict[str, Value]:
    """Return the names that `pattern` binds, each to an unknown value."""
    parts = [getattr(part, "name", None) or getattr(part, "rest", None) for part in ast.walk(pattern)]
    return {name: Unknown("matched") for name in parts if isinstance(name, str)}


def fit(pattern: ast.pattern, subject: Value, named: dict[str, Value]) -> bool | None:
    """Say whether `subject` fits `pattern`, None where that depends on the run; note what it names in `named`."""
    match pattern:
        case ast.MatchAs(pattern=inner, name=name):
            if name is not None:
                named[name] = subject
            return True if inner is None else fit(inner, subject, named)
        case ast.MatchValue(value=ast.Constant(value=plain)) if isinstance(subject, Const):
            return None if subject.soft else bool(plain == subject.value)
        case ast.MatchSingleton(value=plain) if isinstance(subject, Const):
            return None if subject.soft else subject.value is plain
        case ast.MatchOr(patterns=options):
            outcomes = [fit(option, subject, named) for option in options]
            return True if True in outcomes else None if None in outcomes else False
        case ast.MatchSequence(patterns=parts) if isinstance(subject, Items) and subject.complete:
            if any(isinstance(part, ast.MatchStar) for part in parts):
                return None
            return len(parts) == len(subject.items) and _all_fit(parts, subject.items, named)
        case ast.MatchMapping(keys=keys, patterns=parts) if isinstance(subject, Mapping):
            plain_keys = [key.value if isinstance(key, ast.Constant) else None for key in keys]
            if any(key not in subject.items for key in plain_keys):
                return None if subject.other is not None or None in plain_keys else False
            return _all_fit(parts, [subject.items[key] for key in plain_keys], named)
        case _:
            return None


def _all_fit(parts: Sequence[ast.pattern], values: Sequence[Value], named: dict[str, Value]) -> bool | None:
    outcomes = [fit(part, value, named) for part, value in zip(parts, values, strict=True)]
    return False if False in outcomes else None if None in outcomes else True
