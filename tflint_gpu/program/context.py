"""Where a call happens: the loops, branches, scopes and regions that lead to it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tflint_gpu.findings import Location

if TYPE_CHECKING:
    from tflint_gpu.program.calls import Call
    from tflint_gpu.program.values import Dataset, Function, GraphFunction, Value

#: What a region can be. Code in a region does not run where it stands but where the runtime calls it.
REGIONS = {
    "graph": "traced by tf.function",
    "dataset": "a function given to Dataset.map, filter, interleave …: traced, on the CPU",
    "model": "the forward pass of a model or layer: `call`, or a functional model under construction",
    "loss": "a loss or metric function given to compile",
    "train-step": "Model.train_step under fit: compiled unless run_eagerly",
    "test-step": "Model.test_step or predict_step under fit, evaluate, predict",
    "batch-callback": "a callback method that Keras calls for every training batch",
    "epoch-callback": "a callback method that Keras calls once an epoch or less",
    "loader": "__getitem__ of a Sequence/PyDataset, or the body of a generator that feeds training",
}


@dataclass(slots=True, eq=False)
class Frame:
    """One layer of context; `outer` is the layer around it."""

    location: Location


@dataclass(slots=True, eq=False)
class Loop(Frame):
    """A ``for``, ``while`` or comprehension and what happens in it.

    `iterable` is what a ``for`` draws from; `count` is the number of rounds where literals tell it;
    `calls` are all calls made in the body, transitively, in order.
    """

    kind: str
    iterable: Value | None = None
    count: int | None = None
    calls: list[Call] = field(default_factory=list)
    qualname: str = ""
    #: Every round is followed by itself, so that what it adds up to is all there is.
    unrolled: bool = False


@dataclass(slots=True, eq=False)
class Guard(Frame):
    """A branch. `kind` is ``periodic`` (``step % n == 0``; `every` is n where literal), ``debug`` (a debug or
    verbose switch that is off by default), ``fallback`` (an ``except`` body) or ``branch``. `negated` marks the
    arm that runs where `test` is false."""

    kind: str
    every: int | None = None
    test: Value | None = None
    negated: bool = False


@dataclass(slots=True, eq=False)
class Scope(Frame):
    """A ``with`` block: ``device`` (`value` is the device), ``strategy`` (`value` is the strategy), ``tape``
    (`value` is the tape) or ``other``."""

    kind: str
    value: Value | None = None


@dataclass(slots=True, eq=False)
class Region(Frame):
    """Code that the runtime calls: see `REGIONS`. `eager` says that it surely runs op by op.

    `owner` is what made it a region: the graph function, the dataset stage's call, the ``fit`` call …
    """

    kind: str
    eager: bool = False
    owner: GraphFunction | Call | None = None
    dataset: Dataset | None = None


@dataclass(slots=True, eq=False)
class Activation(Frame):
    """A call of a project function that is being followed; `site` is where it is called, where a text does."""

    function: Function
    site: Location | None = None


@dataclass(frozen=True, slots=True, eq=False)
class _Facts:
    """What rules ask of a context most, told from the facts of the context around it and one more frame."""

    loops: tuple[Loop, ...] = ()
    all_loops: tuple[Loop, ...] = ()
    scopes: tuple[Scope, ...] = ()
    regions: tuple[str, ...] = ()
    in_graph: bool = False
    debug: bool = False
    telling: tuple[int | str, ...] = ()

    def inside(self, frame: Frame) -> _Facts:
        """Return the facts of a context that `frame` is the innermost layer of."""
        match frame:
            case Loop():
                loops = (frame, *self.loops)
                return replace(self, loops=loops, all_loops=(frame, *self.all_loops), telling=self._and(frame))
            case Guard(kind=kind) if kind != "branch":
                return replace(self, debug=self.debug or kind == "debug", telling=(kind, *self.telling))
            case Scope():
                return replace(self, scopes=(frame, *self.scopes), telling=self._and(frame))
            case Region(kind=kind, eager=eager):
                traced = self.in_graph or kind in ("graph", "dataset") or (kind in _TRACED and not eager)
                regions = (kind, *self.regions)
                return replace(self, loops=(), regions=regions, in_graph=traced, telling=self._and(frame))
            case _:
                return self

    def _and(self, frame: Frame) -> tuple[int | str, ...]:
        return (id(frame), *self.telling)


_NO_FACTS = _Facts()

#: Regions that are traced into a graph unless they are known to run op by op.
_TRACED = ("model", "loss", "train-step", "test-step")


@dataclass(slots=True, eq=False)
class Context:
    """An immutable chain of frames, innermost first when iterated."""

    frame: Frame | None = None
    outer: Context | None = None
    #: Worked out when first asked for: one context stands for many calls, and every rule asks.
    _known: _Facts | None = field(default=None, init=False, repr=False)

    def inside(self, frame: Frame) -> Context:
        """Return this context with `frame` as its innermost layer."""
        return Context(frame, self)

    def __iter__(self) -> Iterator[Frame]:
        here: Context | None = self
        while here is not None and here.frame is not None:
            yield here.frame
            here = here.outer

    @property
    def _facts(self) -> _Facts:
        pending: list[Context] = []
        here: Context | None = self
        while here is not None and here._known is None:
            pending.append(here)
            here = here.outer
        facts = _NO_FACTS if here is None or here._known is None else here._known
        for context in reversed(pending):
            facts = context._known = facts if context.frame is None else facts.inside(context.frame)
        return facts

    def frames(self) -> Iterator[Frame]:
        """Yield the frames up to and including the innermost region: what surrounds the call where it runs."""
        for frame in self:
            yield frame
            if isinstance(frame, Region):
                return

    def certain_since(self, made: Context) -> bool:
        """Say whether what happens here happens just once after `made`: behind no branch, in no open loop."""
        before = {id(frame) for frame in made}
        return not any(
            isinstance(frame, Guard) or (isinstance(frame, Loop) and not frame.unrolled)
            for frame in self
            if id(frame) not in before
        )

    @property
    def region(self) -> str:
        """Kind of the innermost region, "" for code that runs where it stands."""
        regions = self._facts.regions
        return regions[0] if regions else ""

    @property
    def regions(self) -> tuple[str, ...]:
        """Kinds of all regions, innermost first."""
        return self._facts.regions

    @property
    def in_graph(self) -> bool:
        """Whether the call is traced into a graph: under ``tf.function``, ``fit``'s step, ``Dataset.map``."""
        return self._facts.in_graph

    @property
    def in_step(self) -> bool:
        """Whether the call belongs to model, loss or training step, rather than to input or set-up."""
        regions = self._facts.regions
        if "dataset" in regions or "loader" in regions:
            return False
        return any(region in ("model", "loss", "train-step", "graph") for region in regions)

    @property
    def loops(self) -> tuple[Loop, ...]:
        """The loops around the call in the region it runs in, innermost first."""
        return self._facts.loops

    @property
    def all_loops(self) -> tuple[Loop, ...]:
        """Every loop around the call, across regions and callers, innermost first."""
        return self._facts.all_loops

    @property
    def guards(self) -> tuple[Guard, ...]:
        """The branches around the call inside its innermost loop (or region), innermost first."""
        found = []
        for frame in self.frames():
            if isinstance(frame, Loop):
                break
            if isinstance(frame, Guard):
                found.append(frame)
        return tuple(found)

    @property
    def all_guards(self) -> tuple[Guard, ...]:
        """Every branch around the call, across loops and callers, innermost first."""
        return tuple(frame for frame in self if isinstance(frame, Guard))

    @property
    def periodic(self) -> Guard | None:
        """The ``step % n`` guard inside the innermost loop, if there is one."""
        return next((guard for guard in self.guards if guard.kind == "periodic"), None)

    @property
    def debug(self) -> bool:
        """Whether a debug switch that is off by default guards the call."""
        return self._facts.debug

    def scope(self, kind: str) -> Scope | None:
        """Return the innermost ``with`` block of `kind` around the call, across callers."""
        return next((scope for scope in self._facts.scopes if scope.kind == kind), None)

    @property
    def telling(self) -> tuple[int | str, ...]:
        """What of the context changes how a function is judged: loops, scopes, regions, guards by their kind."""
        return self._facts.telling

    @property
    def activations(self) -> tuple[Activation, ...]:
        """The project functions that are being followed, innermost first."""
        return tuple(frame for frame in self if isinstance(frame, Activation))
