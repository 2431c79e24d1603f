"""What checks see: the program in the field's own words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeVar

from tflint_gpu.findings import Location
from tflint_gpu.program.calls import Call
from tflint_gpu.program.values import Const, Dataset, GraphFunction, Instance, Produced, Stage, Value

if TYPE_CHECKING:
    from tflint_gpu.program.context import Context, Loop
    from tflint_gpu.program.modules import Module
    from tflint_gpu.program.requirements import Requirement
    from tflint_gpu.program.target import Target

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, eq=False)
class Pipeline:
    """A dataset where it is used.

    `role` is ``train``, ``validation``, ``inference`` (predict, evaluate), ``adapt``, ``display``
    (``for x in ds.take(1)`` outside training) or ``other`` (a loop that is no training). `consumer` is the
    ``fit`` call or the loop. `distributed` says a strategy feeds it to its replicas.
    """

    dataset: Dataset
    role: str
    location: Location
    consumer: Call | Loop
    distributed: bool = False

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stages from source to end."""
        return self.dataset.stages

    def stages_of(self, *ops: str) -> Iterator[tuple[int, Stage]]:
        """Yield the position and stage of every stage whose op is one of `ops`."""
        for index, stage in enumerate(self.stages):
            if stage.op in ops:
                yield index, stage

    def has(self, *ops: str) -> bool:
        """Say whether some stage, conditional or not, is one of `ops`."""
        return any(stage.op in ops for stage in self.stages)


@dataclass(slots=True, eq=False)
class Model(Value):
    """A model under construction or done.

    `kind` is ``sequential``, ``functional``, ``subclass``, ``application`` (``keras.applications.*``),
    ``loaded`` or ``unknown``. `layers` are the calls that construct its layers (``keras.layers.LSTM`` …; nested
    models flattened), as far as they are known; `complete` says whether that is all of them. `calls` are the
    calls made inside its forward pass (a subclass's ``call``). `compiles` are its ``compile`` calls, `trained`
    says that ``fit``, ``train_on_batch`` or a step was seen to train it.
    """

    kind: str
    location: Location
    call: Call | None = None
    layers: list[Call] = field(default_factory=list)
    complete: bool = False
    calls: list[Call] = field(default_factory=list)
    compiles: list[Call] = field(default_factory=list)
    instance: Instance | None = None
    trained: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class TrainingRun:
    """Training where it happens: a ``fit`` call (also ``fit_generator``, ``train_on_batch``), or a loop of one's
    own that reaches a step.

    `kind` is ``fit``, ``train_on_batch`` or ``loop``. `data` is the value of ``x`` (or what the loop draws from);
    `pipeline` is set where that is a dataset, `validation` where validation data is one. For a loop, `step` is
    what it trains with.
    """

    kind: str
    location: Location
    qualname: str
    context: Context
    call: Call | None = None
    loop: Loop | None = None
    model: Model | None = None
    data: Value | None = None
    pipeline: Pipeline | None = None
    validation: Pipeline | None = None
    step: Step | None = None

    @property
    def strategy(self) -> Value | None:
        """The distribution strategy whose scope the model was built in, None where there is none."""
        made = self.model.call.context if self.model and self.model.call else self.context
        scope = made.scope("strategy") or self.context.scope("strategy")
        return scope.value if scope else None


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """A gradient step: a tape, its ``gradient`` and the optimizer's ``apply``.

    `apply` is the ``apply_gradients``/``minimize`` call; its context tells loops and regions. `eager` is True when
    the step surely runs op by op, `tape` is where the tape opens. `loop` is the Python loop that drives it.
    """

    apply: Call
    tape: Location
    eager: bool
    loop: Loop | None


@dataclass(frozen=True, slots=True, eq=False)
class Setting:
    """An environment variable that the program sets for itself, ``os.environ["X"] = "…"`` and kin."""

    name: str
    value: Value
    location: Location
    qualname: str
    context: Context


@dataclass(slots=True, eq=False)
class Program:
    """Everything that was read, joined.

    Code of unit tests is read for what it defines but leaves no calls, runs or pipelines here.
    """

    target: Target
    modules: list[Module] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    pipelines: list[Pipeline] = field(default_factory=list)
    models: list[Model] = field(default_factory=list)
    runs: list[TrainingRun] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    functions: list[GraphFunction] = field(default_factory=list)
    loops: list[Loop] = field(default_factory=list)
    settings: list[Setting] = field(default_factory=list)
    requirements: list[Requirement] = field(default_factory=list)
    #: What Python input hands over: the call that draws from it (``fit``, ``from_generator``) and one element.
    elements: list[tuple[Call, Value]] = field(default_factory=list)
    #: Of each module of the project, by its path, those that it imports.
    imports: Mapping[str, frozenset[str]] = field(default_factory=dict)
    _importers: dict[str, frozenset[str]] = field(default_factory=dict)
    _by_callee: dict[str, list[tuple[int, Call]]] | None = None
    _by_context: list[tuple[Context, list[tuple[int, Call]]]] | None = None
    _answers: dict[Callable[[Program], Any], Any] = field(default_factory=dict)

    def calls_to(self, *callees: str) -> Iterator[Call]:
        """Yield every call of one of `callees` (canonical names), name after name, in the order they were met."""
        for callee in callees:
            for _, call in self._index.get(callee, ()):
                yield call

    def calls_where(self, fits: Callable[[str], bool]) -> list[Call]:
        """Return every call of a name that `fits`, in the order they were met; each name is looked at once."""
        found = [entry for callee, entries in self._index.items() if fits(callee) for entry in entries]
        return [call for _, call in sorted(found, key=itemgetter(0))]

    def calls_within(self, fits: Callable[[Context], bool]) -> list[Call]:
        """Return every call whose context `fits`, in the order they were met; each context is looked at once."""
        found = [entry for context, entries in self._contexts if fits(context) for entry in entries]
        return [call for _, call in sorted(found, key=itemgetter(0))]

    def once(self, ask: Callable[[Program], _T]) -> _T:
        """Return ``ask(self)``, worked out when a rule first asks: for what would be asked of every call anew."""
        if ask not in self._answers:
            self._answers[ask] = ask(self)
        answer: _T = self._answers[ask]
        return answer

    @property
    def _contexts(self) -> list[tuple[Context, list[tuple[int, Call]]]]:
        if self._by_context is None:
            index: dict[int, tuple[Context, list[tuple[int, Call]]]] = {}
            for entry in enumerate(self.calls):
                context = entry[1].context
                index.setdefault(id(context), (context, []))[1].append(entry)
            self._by_context = list(index.values())
        return self._by_context

    @property
    def _index(self) -> dict[str, list[tuple[int, Call]]]:
        if self._by_callee is None:
            index: dict[str, list[tuple[int, Call]]] = defaultdict(list)
            for entry in enumerate(self.calls):
                index[entry[1].callee].append(entry)
            self._by_callee = index
        return self._by_callee

    def together(self, first: Module, second: Module) -> bool:
        """Say whether some module has both: it imports them, or is one and imports the other.

        What one script of a project trains tells nothing of models that no script has beside it.
        """
        return not self._having(first.path).isdisjoint(self._having(second.path))

    def _having(self, path: str) -> frozenset[str]:
        """Return the paths of the modules that import `path`, directly or through others, and its own."""
        if path not in self._importers:
            found, new = {path}, {path}
            while new:
                new = {importer for importer, imported in self.imports.items() if imported & new} - found
                found |= new
            self._importers[path] = frozenset(found)
        return self._importers[path]

    def trains(self) -> bool:
        """Say whether the program trains anything at all."""
        return bool(self.runs or self.steps)


def literal(value: Value | None) -> int | float | str | bool | None:
    """Return the literal behind `value` where no run-time flag can change it."""
    if isinstance(value, Const) and not value.soft and isinstance(value.value, (int, float, str, bool)):
        return value.value
    return None


def produced_by(value: Value | None, *callees: str) -> Call | None:
    """Return the call that made `value` if it is one of `callees`."""
    return value.call if isinstance(value, Produced) and value.callee in callees else None
