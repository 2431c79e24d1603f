"""Files in, programs out: which files belong together, and running each group through the machine."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tflint_gpu.program import api, attributes, imports, training
from tflint_gpu.program.context import Context, Region
from tflint_gpu.program.machine import WORK_FLOOR, WORK_PER_LINE, Machine, OutOfWorkError, self_of
from tflint_gpu.program.modules import Module, ModuleIndex, packages_of
from tflint_gpu.program.questions import options_of
from tflint_gpu.program.state import State
from tflint_gpu.program.target import find_target
from tflint_gpu.program.values import Class, Function, GraphFunction, Instance, Tensor, Unknown, Value
from tflint_gpu.program.views import Program
from tflint_gpu.source.texts import Error, ReadError

if TYPE_CHECKING:
    from tflint_gpu.config import Settings
    from tflint_gpu.source.files import SourceFile
    from tflint_gpu.source.texts import Source

#: A file without one of these cannot be TensorFlow or Keras code, nor set it up.
FRAMEWORKS = (b"tensorflow", b"keras", b"CUDA_VISIBLE_DEVICES", b"TF_")

#: Frames that Python may stack up while a program is read; beyond them a statement's outcome is unknown.
STACK = 4000

_TEST_CLASSES = (
    "unittest.TestCase",
    "tf.test.TestCase",
    "absl.testing.absltest.TestCase",
    "absl.testing.parameterized.TestCase",
)


@dataclass(slots=True)
class Built:
    """What `build` made of the files."""

    programs: list[Program] = field(default_factory=list)
    errors: list[Error] = field(default_factory=list)


@dataclass(slots=True)
class Gathered:
    """The texts of a project by the path that imports see, which of them an import means, and what had no text."""

    sources: dict[str, Source]
    index: ModuleIndex
    errors: list[Error]

    def groups(self, needles: tuple[bytes, ...]) -> list[list[str]]:
        """Return the groups of files joined by imports, less those without one of `needles` (none: any file)."""
        return [group for group in _groups(self.index, self.sources) if _relevant(group, self.sources, needles)]


def gather(files: Sequence[SourceFile]) -> Gathered:
    """Read the text of `files`."""
    errors: list[Error] = []
    sources: dict[str, Source] = {}
    for file in files:
        try:
            read = file.read()
        except ReadError as problem:
            errors.append(problem.error)
            continue
        for source in (read, *read.written):
            sources.setdefault(source.name or source.path, source)
    return Gathered(sources, ModuleIndex(sources), errors)


def build(files: Sequence[SourceFile], settings: Settings, needles: tuple[bytes, ...]) -> Built:
    """Read `files` and return the programs they make up, one for each group joined by imports.

    A group in which no file holds one of `needles` (none: any file) is left out: no rule could fire on it.
    """
    gathered = gather(files)
    built = Built(errors=gathered.errors)
    for group in gathered.groups(needles):
        built.programs.append(read_group(group, gathered.index, gathered.sources, settings, built.errors))
    return built


@contextmanager
def _deep_stack() -> Iterator[None]:
    """Let the machine follow calls that nest deeply: one level of the text takes several of Python's."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, STACK))
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


def _groups(index: ModuleIndex, sources: dict[str, Source]) -> Iterator[list[str]]:
    """Yield the files in groups connected by imports, each in the order of its paths."""
    parent = {path: path for path in sources}

    def root(path: str) -> str:
        while parent[path] != path:
            parent[path] = parent[parent[path]]
            path = parent[path]
        return path

    for path, source in sources.items():
        for neighbour in index.neighbours(path, source.text):
            if neighbour in parent:
                parent[root(neighbour)] = root(path)
    groups: dict[str, list[str]] = {}
    for path in sorted(sources):
        groups.setdefault(root(path), []).append(path)
    yield from groups.values()


def _relevant(group: list[str], sources: dict[str, Source], needles: tuple[bytes, ...]) -> bool:
    texts = [sources[path].text.encode("utf-8", "surrogatepass") for path in group]
    framework = any(name in text for text in texts for name in FRAMEWORKS)
    return framework and (not needles or any(needle in text for text in texts for needle in needles))


def read_group(
    group: list[str],
    index: ModuleIndex,
    sources: dict[str, Source],
    settings: Settings,
    errors: list[Error],
    begun: Callable[[Program], None] | None = None,
) -> Program:
    """Return the program that the files of `group` make up.

    What is no Python goes to `errors`. `begun` is given the program before it is read: its modules say of
    themselves whether they were executed yet.
    """
    target, requirements = find_target(group, sources, settings)
    program = Program(target, requirements=requirements)
    modules = {path: _module(path, sources[path]) for path in group}
    program.modules = list(modules.values())
    program.imports = {path: frozenset(index.neighbours(path, sources[path].text)) for path in group}
    lines = sum(source.text.count("\n") for source in (sources[path] for path in group))
    machine = Machine(program, index, modules, max(WORK_FLOOR, lines * WORK_PER_LINE))
    if target.tensorflow < (2, 0):
        return program  # TensorFlow 1 is another language: nothing here is known to hold for it
    if begun is not None:
        begun(program)
    try:
        with _deep_stack():
            concerned = _concerned(program)
            for module in program.modules:
                if module.path in concerned and not module.is_test:
                    imports.run_module(machine, module)
            _read_alone(machine)
    except OutOfWorkError:
        pass  # what was seen so far stands; the rest is unknown
    for module in program.modules:
        errors.extend(module.errors)
        module.drop_tree()
    return program


def _module(path: str, source: Source) -> Module:
    name = path.removesuffix(".py").removesuffix(".ipynb").replace("/", ".")
    return Module(path, name.removesuffix(".__init__"), source, packages=packages_of(source.text))


def _holds_framework(module: Module) -> bool:
    text = module.source.text
    return any(name.decode() in text for name in FRAMEWORKS)


def _concerned(program: Program) -> set[str]:
    """Return the paths of the modules that use a framework: in their own text, or through what they import."""
    found = {module.path for module in program.modules if _holds_framework(module)}
    others = {path: imported for path, imported in program.imports.items() if path not in found}
    while True:
        more = {path for path, imported in others.items() if path not in found and imported & found}
        if not more:
            return found
        found |= more


# --- code that nobody in the project calls


def _read_alone(machine: Machine) -> None:
    """Read every function and method that was not reached by a call, as its unknown callers would run it."""
    classes = [defined for defined in machine.defined if isinstance(defined, Class)]
    heirs = {id(base) for cls in classes if not cls.module.is_test for base in cls.lineage[1:]}
    done = 0
    while done < len(machine.defined):
        defined = machine.defined[done]
        done += 1
        if id(defined) not in heirs:
            _read_definition(machine, defined)
    # A base class comes after those that derive from it: perhaps nobody makes an object of it.
    for cls in classes:
        if id(cls) in heirs:
            _read_definition(machine, cls)


def _read_definition(machine: Machine, defined: Function | Class) -> None:
    if defined.module.is_test:
        return
    state = State(defined.module, {}, "", Context())
    if isinstance(defined, Class):
        _read_class(machine, defined, state)
    elif defined.owner is None and id(defined.node) not in machine.followed and not _is_test(defined):
        _read_function(machine, defined, state)


def _is_test(function: Function) -> bool:
    return function.name.startswith("test_") and bool({"pytest", "unittest"} & function.module.packages)


def _read_function(machine: Machine, function: Function, state: State) -> None:
    graph = _graph_of(machine, function)
    context = state.context
    if graph is not None:
        context = context.inside(Region(function.location, "graph", owner=graph))
    result = machine.follow(function, (), {}, context, alone=True)
    _draw(machine, result, context)


def _graph_of(machine: Machine, function: Function) -> GraphFunction | None:
    return next(
        (
            g
            for g in machine.program.functions
            if isinstance(g.function, Function) and g.function.node is function.node
        ),
        None,
    )


def _draw(machine: Machine, result: Value, context: Context) -> None:
    from tflint_gpu.program.values import Generator

    for option in options_of(result):
        if isinstance(option, Generator):
            machine.draw(option, context)


def _read_class(machine: Machine, cls: Class, state: State) -> None:
    if cls.is_a(*_TEST_CLASSES):
        return
    members: dict[str, Value] = {}
    for base in reversed(cls.lineage):
        members.update(base.members if isinstance(base, Class) else {})
    pending = [member for member in members.values() if _unread(machine, member)]
    if not pending:
        return
    owner = self_of(machine, cls, state)
    if cls.is_a("keras.callbacks.Callback") and isinstance(owner, Instance):
        training.follow_callback(machine, state, owner, None)
    for member in pending:
        if _unread(machine, member):
            _read_method(machine, cls, owner, member, state)


def _unread(machine: Machine, member: Value) -> bool:
    inner = member.function if isinstance(member, GraphFunction) else member
    return isinstance(inner, Function) and id(inner.node) not in machine.followed


#: Methods that Keras calls in a region of its own: (base classes, method) → kind of region.
_HOOKS = (
    (api.LAYER_CLASSES, ("call",), "model"),
    (api.MODEL_CLASSES, ("call",), "model"),
    (api.MODEL_CLASSES, ("train_step",), "train-step"),
    (api.MODEL_CLASSES, ("test_step", "predict_step"), "test-step"),
    (("keras.utils.PyDataset",), ("__getitem__",), "loader"),
    (("keras.losses.Loss",), ("call",), "loss"),
    (("keras.metrics.Metric",), ("update_state", "result"), "loss"),
)


def _read_method(machine: Machine, cls: Class, owner: Value, member: Value, state: State) -> None:
    bound = attributes.bind(member, owner)
    function = bound.function if isinstance(bound, GraphFunction) else bound
    assert isinstance(function, Function)
    kind = next((kind for bases, names, kind in _HOOKS if function.name in names and cls.is_a(*bases)), None)
    if isinstance(bound, GraphFunction):
        kind = "graph"
    if kind is None:
        result = machine.follow(function, (), {}, state.context, alone=True)
        _draw(machine, result, state.context)
        return
    owner_of_region = bound if isinstance(bound, GraphFunction) else None
    context = state.context.inside(Region(function.location, kind, owner=owner_of_region))
    arguments: tuple[Value, ...] = ()
    if kind not in ("graph", "loader"):
        spec = function.node.args
        wanted = max(0, len(spec.args) - 1 - len(spec.defaults))
        arguments = tuple(Tensor() for _ in range(wanted))
    elif kind == "loader":
        arguments = (Unknown("index"),)
    machine.follow(function, arguments, {}, context, alone=kind == "graph")
