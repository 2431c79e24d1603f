"""The algebra of symbolic values: what an expression stands for, as far as the text alone can say.

Evaluation never guesses. A value that cannot be told is `Unknown`, and every rule that needs it stays
silent. Values are compared by identity; they are shared, never copied and, but for containers and objects, never
changed. (They are not frozen dataclasses because those take three times as long to make.)
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tflint_gpu.findings import Location
from tflint_gpu.source.trees import nodes_of

if TYPE_CHECKING:
    from tflint_gpu.program.calls import Call
    from tflint_gpu.program.context import Loop
    from tflint_gpu.program.modules import Module


class Value:
    """Anything an expression can stand for."""

    __slots__ = ()


@dataclass(slots=True, eq=False)
class Unknown(Value):
    """Nothing is known; `why` says what stopped the reading, for debugging only.

    `number` says that it is some Python number all the same; `counted` is the loop that surely changes it in
    every round.
    """

    why: str = ""
    number: bool = False
    counted: Loop | None = None


@dataclass(slots=True, eq=False)
class Const(Value):
    """A literal, or arithmetic over literals.

    `soft` marks a default that a user may override at run time (argparse, flags, a parameter's default in a
    function that nobody calls): rules lower their voice, and never offer a fix.
    """

    value: Any
    soft: bool = False


@dataclass(slots=True, eq=False)
class External(Value):
    """A thing outside the project by its canonical name: module, class, function or constant."""

    name: str


@dataclass(slots=True, eq=False)
class Parameter(Value):
    """An argument of a function that is read on its own because nobody in the project calls it."""

    name: str
    annotation: str = ""


@dataclass(slots=True, eq=False)
class Items(Value):
    """A list, tuple or set display; `complete` is False when unseen elements may be among them."""

    kind: str
    items: tuple[Value, ...]
    complete: bool = True


@dataclass(slots=True, eq=False)
class Mapping(Value):
    """A dict by literal keys; `other` stands for the values behind keys that are not literal."""

    items: dict[Any, Value] = field(default_factory=dict)
    other: Value | None = None


@dataclass(slots=True, eq=False)
class Choice(Value):
    """One of several values, by a branch whose condition is not known (at most `MAX_CHOICES`)."""

    options: tuple[Value, ...]


@dataclass(slots=True, eq=False)
class Operation(Value):
    """Arithmetic, comparison, formatting or a boolean expression that did not fold to a constant."""

    operator: str
    operands: tuple[Value, ...]


@dataclass(slots=True, eq=False)
class Attribute(Value):
    """An attribute of a value that the model does not know more closely: ``strategy.num_replicas_in_sync``."""

    base: Value
    name: str


@dataclass(slots=True, eq=False)
class Subscript(Value):
    """``base[key]``; a slice is an `Operation` ``slice`` over start, stop and step."""

    base: Value
    key: Value


@dataclass(slots=True, eq=False)
class Element(Value):
    """What a loop draws from `source`; `index` says which member of a drawn tuple (``for i, (x, y) in …``)."""

    source: Value
    index: int | None = None


@dataclass(slots=True, eq=False)
class Produced(Value):
    """What a call outside the project returned; `call.callee` names it."""

    call: Call

    @property
    def callee(self) -> str:
        """Canonical name of what was called."""
        return self.call.callee


@dataclass(slots=True, eq=False)
class Tensor(Value):
    """A tensor: the result of a TensorFlow or Keras op (`origin`), or computed from one.

    `symbolic` marks the Keras tensors that functional models are built from; `model` is the model that a
    call such as ``model(x)`` came from. `operator` is the one that made it of its parents where no call did:
    ``+``, ``@``, ``compare``, ``~``, ``[]`` …; ``variable`` is a state that the device keeps, as an optimizer's
    step counter.
    """

    origin: Call | None = None
    symbolic: bool = False
    parents: tuple[Value, ...] = ()
    operator: str = ""


@dataclass(slots=True, eq=False)
class Partial(Value):
    """``functools.partial``: a function with arguments laid down in advance.

    `method` says that an object's class holds it as a ``partialmethod``, which becomes a bound one.
    """

    function: Value
    args: tuple[Value, ...]
    kwargs: dict[str, Value]
    method: bool = False


@dataclass(slots=True, eq=False)
class Function(Value):
    """A function, lambda or method of the project, with what it closes over.

    `bound` is the instance of a bound method. `kind` is ``function``, ``static``, ``class`` or ``property``.
    """

    name: str
    qualname: str
    module: Module
    location: Location
    node: Any
    closure: Any = None
    bound: Value | None = None
    owner: Class | None = None
    kind: str = "function"
    #: Of a property, the method that is run when it is set.
    setter: Function | None = None
    #: What decorators pass to parameters by name unless a command line says otherwise.
    options: dict[str, Value] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Class(Value):
    """A class of the project; `bases` are project classes or `External` ones, `ancestry` their canonical names."""

    name: str
    qualname: str
    module: Module
    location: Location
    node: Any
    bases: tuple[Value, ...] = ()
    members: dict[str, Value] = field(default_factory=dict)
    #: The class and those it descends from in Python's order of look-up, as far as they are known.
    lineage: tuple[Class | External, ...] = ()

    def __post_init__(self) -> None:
        self.lineage = (self, *_merged(self.bases))

    def ancestry(self) -> Iterator[str]:
        """Yield the canonical names of all classes outside the project that this one descends from."""
        return (base.name for base in self.lineage if isinstance(base, External))

    def is_a(self, *names: str) -> bool:
        """Say whether the class descends from one of `names` (canonical)."""
        return any(ancestor in names for ancestor in self.ancestry())

    @property
    def mutable(self) -> frozenset[str]:
        """Attributes of ``self`` that methods beside ``__init__`` assign: their first value is one of several."""
        known = getattr(self.node, "mutable", None)
        if known is None:
            known = frozenset(_assigned_on_self(self.node))
            self.node.mutable = known
        return frozenset(known)

    def find(self, name: str) -> Value | None:
        """Return the member `name`, searched through the project's own bases."""
        return find_in(self.lineage, name)


#: Methods that make an object: what they set on it is its first value.
_MAKERS = ("__init__", "__post_init__", "__new__")


def _assigned_on_self(node: ast.ClassDef) -> Iterator[str]:
    for method in node.body:
        if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef) and method.name not in _MAKERS:
            for part in nodes_of(method):
                match part:
                    case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                        yield name


def find_in(lineage: Iterable[Class | External], name: str) -> Value | None:
    """Return the member `name` of the first class of the project in `lineage` that has it."""
    for cls in lineage:
        if isinstance(cls, Class) and name in cls.members:
            return cls.members[name]
    return None


def _merged(bases: Iterable[Value]) -> Iterator[Class | External]:
    """Yield the ancestors that `bases` bring in Python's order (C3), those that contradict it as they come."""
    known = [base for base in bases if isinstance(base, Class | External)]
    rows = [list(base.lineage) if isinstance(base, Class) else [base] for base in known]
    if len(rows) > 1:
        rows.append(list(known))
    else:
        yield from (member for row in rows for member in row)
        return
    while rows := [row for row in rows if row]:
        later = {_key_of(member) for row in rows for member in row[1:]}
        head = next((row[0] for row in rows if _key_of(row[0]) not in later), rows[0][0])
        yield head
        rows = [[member for member in row if _key_of(member) != _key_of(head)] for row in rows]


def _key_of(cls: Class | External) -> int | str:
    return cls.name if isinstance(cls, External) else id(cls)


@dataclass(slots=True, eq=False)
class Instance(Value):
    """An object of a project class; `call` is the construction, None for `self` of a method read on its own."""

    cls: Class
    attributes: dict[str, Value] = field(default_factory=dict)
    call: Call | None = None


@dataclass(slots=True, eq=False)
class Generator(Value):
    """What a call of a generator function returned; its body runs when something draws from it.

    `state` is the interpreter's own: the arguments bound, nothing executed yet.
    """

    function: Function
    state: Any


@dataclass(slots=True, eq=False)
class Imported(Value):
    """A module of the project, as an import names it."""

    module: Module


@dataclass(slots=True, eq=False)
class Super(Value):
    """``super()`` in a method of `cls`, for the object `instance`."""

    cls: Class
    instance: Value


@dataclass(slots=True, eq=False)
class GraphFunction(Value):
    """A ``tf.function``: what it wraps and how, where it was made, and every call of it.

    `made` is the decorator's or the wrapping call (its context says whether that happens in a loop or
    anew in every call of a method). `options` are the keyword arguments given to ``tf.function``.
    """

    function: Value
    made: Call
    options: dict[str, Value] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)

    @property
    def jit(self) -> bool:
        """Whether the function is compiled with XLA by its own word."""
        option = self.options.get("jit_compile") or self.options.get("experimental_compile")
        return isinstance(option, Const) and option.value is True


@dataclass(slots=True, eq=False)
class Stage:
    """One transformation (or the source) of a dataset.

    `op` is the method's or source's short name: ``map``, ``batch``, ``from_tensor_slices``,
    ``image_dataset_from_directory``, ``TFRecordDataset`` … `function` is what was handed to ``map``,
    ``filter``, ``interleave`` …; `calls` are all calls made inside it, transitively; `captures_variable`
    says that it uses a ``tf.Variable`` or a stateful Keras layer from outside. `nested` are the datasets
    that an ``interleave``/``flat_map`` function returns. `conditional` marks a stage that a branch may skip.
    """

    op: str
    call: Call
    function: Value | None = None
    calls: tuple[Call, ...] = ()
    nested: tuple[Dataset, ...] = ()
    conditional: bool = False
    captures_variable: bool = False

    @property
    def location(self) -> Location:
        """Where the stage's call stands."""
        return self.call.location


@dataclass(slots=True, eq=False)
class Dataset(Value):
    """A ``tf.data`` pipeline as a value: its source and every transformation, in order.

    Every dataset a program holds is known from its source on; where a link is not known the value is
    `Unknown` instead. `options` are the constants set through ``with_options``, by dotted attribute name.
    `element_bytes`/`cardinality` are known only from literal shapes.
    """

    stages: tuple[Stage, ...]
    options: dict[str, Value] = field(default_factory=dict)
    #: Made by ``strategy.experimental_distribute_dataset`` and kin: the runtime adds a device prefetch.
    distributed: bool = False

    @property
    def source(self) -> Stage:
        """The stage that everything starts from."""
        return self.stages[0]

    @property
    def last(self) -> Stage:
        """The last stage."""
        return self.stages[-1]


#: Branches that are joined beyond this number make the value unknown.
MAX_CHOICES = 6
