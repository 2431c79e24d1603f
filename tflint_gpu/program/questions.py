"""What the machine and the rules ask of values: alternatives, literals, elements, what they were computed from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tflint_gpu.program.values import (
    Attribute,
    Choice,
    Const,
    Element,
    Items,
    Mapping,
    Operation,
    Partial,
    Produced,
    Subscript,
    Tensor,
    Unknown,
    Value,
)

#: How many of the values that one was computed from are looked at: a tensor deep in a model has thousands.
MAX_ORIGINS = 200


def options_of(value: Value | None) -> tuple[Value, ...]:
    """Return the alternatives of a `Choice`, or the value alone; nothing for None."""
    if value is None:
        return ()
    return value.options if isinstance(value, Choice) else (value,)


def constant(value: Value | None) -> Any:
    """Return the literal behind `value`, None where there is none."""
    return value.value if isinstance(value, Const) else None


def leaves(value: Value | None) -> list[Value]:
    """Return what lists and dicts nested in `value` hold, at most `MAX_ORIGINS` of it: they may hold themselves.

    A list of which elements are unknown stands for itself.
    """
    found: list[Value] = []
    seen: set[int] = set()
    stack = [] if value is None else [value]
    while stack and len(seen) < MAX_ORIGINS:
        top = stack.pop()
        if isinstance(top, Items | Mapping):
            if id(top) in seen:
                continue
            seen.add(id(top))
        match top:
            case Items(items=items, complete=complete):
                stack.extend(reversed(items))
                found.extend([] if complete else [Unknown("elements")])
            case Mapping(items=entries, other=other):
                stack.extend(reversed(entries.values()))
                found.extend([other] if other is not None else [])
            case _:
                found.append(top)
    return found + ([Unknown("elements")] if stack else [])


def is_true(value: Value | None) -> bool:
    """Say whether `value` is certainly a true constant that no run-time flag can change."""
    return isinstance(value, Const) and not value.soft and bool(value.value)


def parts_of(value: Value) -> tuple[Value | None, ...]:
    """Return what `value` was computed from, one step back."""
    match value:
        case Choice(options=parts) | Items(items=parts) | Operation(operands=parts) | Tensor(parents=parts):
            return parts
        case Attribute(base=base) | Element(source=base):
            return (base,)
        case Subscript(base=base, key=key):
            return (base, key)
        case Produced(call=call):
            return (call.receiver, *call.args, *call.kwargs.values())
        case Mapping(items=items, other=other):
            return (*items.values(), other)
        case Partial(function=function, args=args, kwargs=kwargs):
            return (function, *args, *kwargs.values())
        case _:
            return ()


def walk(value: Value | None, parts: Callable[[Value], Iterable[Value | None]] = parts_of) -> Iterator[Value]:
    """Yield `value` and the values it was computed from, each once, at most `MAX_ORIGINS` of them.

    `parts` says how far back each value is followed.
    """
    seen: set[int] = set()
    stack = [value]
    while stack and len(seen) < MAX_ORIGINS:
        top = stack.pop()
        if top is None or id(top) in seen:
            continue
        seen.add(id(top))
        yield top
        stack.extend(parts(top))
