"""Imports: which module or outside thing a name is bound to; modules of the project run when first imported."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from tflint_gpu.program.context import Context
from tflint_gpu.program.names import canonical, member
from tflint_gpu.program.state import State
from tflint_gpu.program.values import (
    Const,
    External,
    Imported,
    Items,
    Unknown,
    Value,
)

if TYPE_CHECKING:
    from tflint_gpu.program.machine import Machine
    from tflint_gpu.program.modules import Module


def import_names(machine: Machine, state: State, node: ast.Import) -> None:
    """``import a.b as c``."""
    for alias in node.names:
        whole = import_module(machine, state.module, 0, alias.name)
        if alias.asname:
            state.names[alias.asname] = whole if whole is not None else External(canonical(alias.name))
            continue
        head = alias.name.partition(".")[0]
        if whole is None:
            state.names[head] = External(canonical(head))
        else:
            first = whole if head == alias.name else import_module(machine, state.module, 0, head)
            state.names[head] = first if first is not None else whole


def import_from(machine: Machine, state: State, node: ast.ImportFrom) -> None:
    """``from a.b import c``."""
    module = node.module or ""
    inside = import_module(machine, state.module, node.level, module)
    for alias in node.names:
        name = alias.asname or alias.name
        if alias.name == "*":
            _import_star(machine, state, inside, module)
        elif isinstance(inside, Imported):
            found = state.names[name] = member_of(machine, inside.module, alias.name)
            if isinstance(found, Unknown):
                # In a circle of imports the other module may still define it.
                inside.module.waiting.append((state.names, name, alias.name, found))
        elif node.level:
            state.names[name] = Unknown(f"import from {'.' * node.level}{module}")
        else:
            state.names[name] = External(canonical(f"{module}.{alias.name}"))


def _import_star(machine: Machine, state: State, inside: Value | None, module: str) -> None:
    if isinstance(inside, Imported):
        run_module(machine, inside.module)
        listed = inside.module.names.get("__all__")
        if isinstance(listed, Items) and listed.complete:
            names = [part.value for part in listed.items if isinstance(part, Const)]
            state.names.update({name: member_of(machine, inside.module, str(name)) for name in names})
        else:
            state.names.update({n: v for n, v in inside.module.names.items() if not n.startswith("_")})
        state.module.stars.extend(inside.module.stars)
    elif module:
        state.module.stars.append(canonical(module))


def import_module(machine: Machine, importer: Module, level: int, name: str) -> Value | None:
    """Return the project's module that an import means, None where it lies outside the project."""
    path = machine.index.resolve(importer.path, level, name)
    if path is not None:
        module = machine.module_at(path)
        if module is not None:
            run_module(machine, module)
            return Imported(module)
        if path.endswith("/__init__.py"):  # a package whose own file nobody imports: its modules are there
            return Imported(machine.namespace_package(path.removesuffix("/__init__.py"), name))
    folder = machine.index.is_package(importer.path, level, name) if path is None else None
    if folder is not None and (level or not _is_library(name)):
        return Imported(machine.namespace_package(folder, name))
    return None


def _is_library(name: str) -> bool:
    return name.partition(".")[0] in ("tensorflow", "keras", "numpy", "tf_keras", "os", "sys")


def submodule(machine: Machine, module: Module, name: str) -> Module | None:
    """Return the module `name` of the package that `module` is, None where there is none."""
    folder, _, file = module.path.rpartition("__init__.py")
    if file or not module.path.endswith("__init__.py"):
        return None
    for candidate in (f"{folder}{name}.py", f"{folder}{name}/__init__.py"):
        found = machine.module_at(candidate)
        if found is not None:
            run_module(machine, found)
            return found
    return None


def run_module(machine: Machine, module: Module) -> None:
    """Execute the body of `module` once; one that does not parse defines nothing."""
    if module.executed:
        return
    module.executed = True
    if module.tree is None:
        return
    body = module.tree.body
    machine.muted += module.is_test
    try:
        machine.execute(body, State(module, module.names, "", Context()))
    finally:
        machine.muted -= module.is_test
    for names, name, attribute, value in module.waiting:
        if names.get(name) is value and attribute in module.names:
            names[name] = module.names[attribute]
    module.waiting.clear()


def member_of(machine: Machine, module: Module, name: str) -> Value:
    """Return what ``module.name`` is for a module of the project, running the module first."""
    run_module(machine, module)
    if name in module.names:
        return module.names[name]
    inside = submodule(machine, module, name)
    if inside is not None:
        return Imported(inside)
    for star in module.stars:
        return External(member(star, name))
    return Unknown(f"{module.name}.{name}")
