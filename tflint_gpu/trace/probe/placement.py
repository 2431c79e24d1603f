"""Where every op of the traced graphs runs, or would run on a machine with a GPU. Part of the probe: stdlib + TensorFlow.

How the rest of the probe calls this module:

* ``start_recording()`` once, just before the first step runs (it initialises the runtime, so never earlier: the
  script may still want to set memory growth). Does nothing on a machine without a GPU.
* ``watch_layers(layer_class, is_project)`` once Keras is imported: remembers the line that made each layer, so that
  ops of built-in layers are charged to it rather than to ``fit``.
* ``watch_compile(model_class)`` likewise (``keras.Model``), then ``keras_would_jit(model)`` says whether Keras 3 would
  compile this model's step with XLA on a GPU: hand it to the parent as ``keras_auto_jit``.
* ``collect(functions, is_project, in_step)`` at the end of the window -> list of plain dicts (see `collect`).

``is_project(filename) -> bool`` tells the user's files by the name that Python gives them in a frame.
"""

import collections
import functools
import inspect
import re
import sys

#: Wrappers and bookkeeping that stand for no work of their own: the ops inside wrappers are reported instead.
BOOKKEEPING = frozenset(
    "Const Placeholder PlaceholderWithDefault NoOp Identity IdentityN StopGradient PreventGradient Assert _Arg _Retval "
    "If StatelessIf While StatelessWhile Case StatelessCase PartitionedCall StatefulPartitionedCall XlaLaunch "
    "SymbolicGradient RemoteCall Switch Merge Enter Exit NextIteration LoopCond VarHandleOp VarIsInitializedOp "
    "DestroyResourceOp SaveV2 RestoreV2 MergeV2Checkpoints ShardedFilename Shape ShapeN Size Rank "
    "BroadcastGradientArgs BroadcastArgs ConcatOffset OptionalHasValue OptionalGetValue OptionalFromValue OptionalNone "
    "FakeParam ReadVariableOp HashTableV2 MutableHashTableV2 MutableDenseHashTableV2 AnonymousSeedGenerator".split()
)
BOOKKEEPING_WORDS = ("Dataset", "Iterator", "Summary")
#: These run Python, whatever device TensorFlow registers them for.
PYTHON_OPS = frozenset(("PyFunc", "PyFuncStateless", "EagerPyFunc"))
#: Up to this many elements, whole numbers are shapes, counters and seeds: cheap wherever they are.
SMALL = 64
#: Kernels that a GPU build registers for the GPU but that work in host memory matter only on data of this many elements.
LARGE = 1024

_layer_spots = {}
_asked_jit = {}
_recording = [False]


def watch_layers(layer_class, is_project):
    """Remember the project line that constructs each instance of `layer_class` (a Keras ``Layer``), by layer name."""
    original = layer_class.__init__

    @functools.wraps(original)
    def init(self, *args, **kwargs):
        original(self, *args, **kwargs)
        spot = _constructor_spot(self, is_project)
        if spot:
            _layer_spots[self.name] = spot

    # Keras reads the constructor's signature to build a layer's config, and does not look through wrappers.
    init.__signature__ = inspect.signature(original)
    layer_class.__init__ = init


def _constructor_spot(layer, is_project):
    """Return (file, line, function) of the first project frame that is not a method of `layer` itself."""
    frame = sys._getframe(2)
    while frame is not None:
        code = frame.f_code
        if is_project(code.co_filename):
            first = code.co_varnames[0] if code.co_argcount else None
            if first is None or frame.f_locals.get(first) is not layer:
                return (code.co_filename, frame.f_lineno, code.co_name)
        frame = frame.f_back
    return None


def start_recording():
    """Keep the graphs that TensorFlow really runs, with the device of every node, from the next function on."""
    if not _has_gpu():
        return
    from tensorflow.python.eager import context

    context.context().enable_graph_collection()
    _recording[0] = True


def _recorded():
    """Return {(op type, last part of the name): [(whole name, device)]} of the graphs that ran so far."""
    index = collections.defaultdict(list)
    if not _recording[0]:
        return index
    from tensorflow.python.eager import context

    metadata = context.context().export_run_metadata()
    context.context().disable_graph_collection()
    _recording[0] = False
    for graph in metadata.function_graphs if metadata else ():
        for part in graph.partition_graphs:
            bodies = [part.node] + [function.node_def for function in part.library.function]
            for node in (node for body in bodies for node in body):
                index[node.op, node.name.rsplit("/", 1)[-1]].append((node.name, node.device))
    return index


def collect(functions, is_project, in_step=None):
    """Report the ops of `functions` (traced ``ConcreteFunction``s; retraces and nested ones may be among them).

    `in_step(concrete_function) -> bool` says whether one belongs to the training step (default: all do). Functions
    of tf.data pipelines are left out: the CPU is their place. Returns records, one for each op type, dtypes, line and
    function, ordered by line:

    ``op``, ``count``, ``dtypes`` (of inputs and outputs, each once), ``types`` (type attributes, ``{"T": "float32"}``),
    ``path`` (as frames name it) and ``line`` (None where no project line leads there), ``function`` (its Python name),
    ``graph``, ``device`` (``cpu``, ``gpu`` or None: not known here), ``basis`` (``ran`` | ``kernels`` | ``none``),
    ``why`` (``no-kernel`` | ``dtype`` | ``host-memory`` | ``asked`` | ``python`` | ""), ``bytes`` (inputs and outputs,
    unknown dimensions counted as one; None where a rank is unknown), ``in_step``, ``jit`` (``jit_compile`` holds for its
    graph) and ``compiles`` (XLA has a kernel for it; None where this process never loaded XLA).
    """
    known = functools.lru_cache(maxsize=None)(is_project)
    kernels = _Kernels() if _cuda_build() else None
    recorded = _recorded()
    merged = {}
    for concrete in functions:
        try:
            found = _of_function(concrete, known, kernels, recorded)
            step = bool(in_step(concrete)) if in_step else True
        except Exception:  # a graph that this TensorFlow shows differently must not end the user's run
            continue
        for key, record in found.items():
            _merge(merged, key, record, step)
    return sorted(merged.values(), key=lambda r: (r["path"] or "~", r["line"] or 0, r["op"]))


def _merge(merged, key, record, step):
    """Join the same ops seen in another trace of the function: the larger count holds, not the sum."""
    record["in_step"] = step
    other = merged.setdefault(key, record)
    if other is record:
        return
    other["count"] = max(other["count"], record["count"])
    other["in_step"] = other["in_step"] or step
    other["jit"] = other["jit"] or record["jit"]
    sizes = [size for size in (other["bytes"], record["bytes"]) if size is not None]
    other["bytes"] = max(sizes) if sizes else None


def watch_compile(model_class):
    """Remember what ``jit_compile`` each call of ``model_class.compile`` asked for: Keras keeps only what it decided."""
    original = model_class.compile
    signature = inspect.signature(original)

    @functools.wraps(original)
    def compile(model, *args, **kwargs):  # noqa: A001 - it stands for Keras' method
        asked = signature.bind_partial(model, *args, **kwargs)
        asked.apply_defaults()
        _asked_jit[id(model)] = asked.arguments.get("jit_compile")
        return original(model, *args, **kwargs)

    model_class.compile = compile


def keras_would_jit(model):
    """Say whether Keras 3 compiles the training step of `model` with XLA on a GPU; None where it cannot be told.

    Keras decides when ``compile`` runs, and on a machine without a GPU against it, so its decision is made again here
    without that clause: asked for, or left at "auto" with every layer able, no strategy and no determinism.
    """
    asked = _asked_jit.get(id(model))
    if asked is None or not hasattr(model, "_flatten_layers"):
        return None
    if getattr(model, "run_eagerly", False) or not asked:
        return False
    import tensorflow as tf

    able = all(getattr(layer, "supports_jit", False) for layer in model._flatten_layers())
    strategy = getattr(model, "_distribute_strategy", None) or tf.distribute.has_strategy()
    return able and not strategy and not _deterministic()


def _deterministic():
    from tensorflow.python.framework import config

    check = getattr(config, "is_op_determinism_enabled", None)
    return bool(check and check())


def _has_gpu():
    import tensorflow as tf

    return bool(tf.config.list_physical_devices("GPU"))


def _cuda_build():
    import tensorflow as tf

    return tf.test.is_built_with_cuda()


def _of_function(concrete, known, kernels, recorded):
    """Return {key: record} of one traced function and of all graphs nested in it."""
    records = {}
    graph = concrete.graph
    if graph.name.startswith("Dataset_"):
        return records
    nodes = list(_nodes(graph, _must_compile(concrete), known))
    forward = _forward_spots(nodes)
    for node in nodes:
        _charge_to_cause(node, forward)
        if _is_work(node.op):
            _add(records, node, kernels, recorded)
    return records


class _Node:
    """An op with the graph it stands in, whether XLA compiles it, and the user's line it comes from."""

    __slots__ = ("function", "graph", "jit", "op", "spot")

    def __init__(self, op, graph, jit, spot):
        self.op = op
        self.graph = graph
        self.jit = jit
        self.spot = spot


def _nodes(graph, jit, known):
    """Yield every op of `graph` and of the functions it calls, each function once."""
    todo, seen = [(graph, jit, None)], set()
    while todo:
        graph, jit, caller = todo.pop()
        for op in graph.get_operations():
            spot = _spot(op, known) or caller
            yield _Node(op, graph.name, jit, spot)
            if _is_input(op.type):
                continue
            for name, attributes in _called(op):
                nested = _graph_of(graph, name)
                if name in seen or nested is None:
                    continue
                seen.add(name)
                compiled = jit or "_XlaMustCompile" in op.node_def.attr and op.node_def.attr["_XlaMustCompile"].b
                compiled = compiled or attributes.get("_XlaMustCompile", False)
                todo.append((nested, compiled, spot))


def _called(op):
    """Yield (name, {boolean attributes}) of the functions that `op` calls."""
    for value in op.node_def.attr.values():
        functions = [value.func] if value.HasField("func") else value.list.func
        for function in functions:
            yield function.name, {name: attr.b for name, attr in function.attr.items()}


def _graph_of(graph, name):
    """Return the FuncGraph of the function `name` known to `graph`, None where only its definition is left."""
    getter = getattr(graph, "_get_function", None)
    function = getter(name) if getter else None
    return getattr(function, "graph", None)


def _must_compile(concrete):
    """Say whether the function was asked to compile with XLA (``jit_compile=True``)."""
    definition = getattr(concrete, "function_def", None)
    if definition is None:
        definition = concrete._inference_function.definition
    return "_XlaMustCompile" in definition.attr and definition.attr["_XlaMustCompile"].b


def _spot(op, known):
    """Return (file, line, function) of the innermost project frame that made `op`."""
    for frame in reversed(op.traceback or ()):
        if known(frame.filename):
            return (frame.filename, frame.lineno, frame.name)
    return None


def _forward_spots(nodes):
    """Return {name or enclosing scope of a forward op: its spot}, which is where its gradient belongs too."""
    spots = {}
    for node in nodes:
        name = node.op.name
        if node.spot and not name.startswith("gradient_tape/"):
            spots.setdefault(name, node.spot)
            spots.setdefault(name.rpartition("/")[0], node.spot)
    return spots


def _charge_to_cause(node, forward):
    """Move an op made by a tape, or deep inside a built-in layer, to the line that asked for it."""
    scope = _differentiated(node.op.name)
    while scope:
        if scope in forward:
            node.spot = forward[scope]
            break
        scope = scope.rpartition("/")[0]
    made = _layer_of(scope + "/" if scope else node.op.name)
    if made and not _inside_layer(node.spot, made):
        node.spot = made


def _differentiated(name):
    """Return the name of the forward op or scope whose gradient the op `name` computes, "" where it is no gradient.

    Tapes write ``gradient_tape/<scope>/<Op>Grad``, bodies of loops and branches ``…gradients/<scope>/<Op>_grad/<Op>Grad``.
    """
    inner = name.rpartition("gradients/")[2] if "gradients/" in name else ""
    if not inner and name.startswith("gradient_tape/"):
        inner = name[len("gradient_tape/") :]
    parts = inner.split("/")[:-1]
    return "/".join(part[: -len("_grad")] if part.endswith("_grad") else part for part in parts)


def _layer_of(name):
    """Return where the innermost layer in the scopes of op `name` was made; graphs number a scope that comes again."""
    for part in reversed(name.split("/")[:-1]):
        made = _layer_spots.get(part) or _layer_spots.get(re.sub(r"_\d+$", "", part))
        if made:
            return made
    return None


def _inside_layer(spot, made):
    """Say whether `spot` is closer to the op than the line `made` that constructed its layer.

    Code of the user's own layer lives in its ``call`` and is the better line; ``fit`` or ``model(x)`` is not.
    """
    return spot is not None and spot[2] in ("call", "<lambda>") and spot[:2] != made[:2]


def _is_input(op_type):
    return any(word in op_type for word in BOOKKEEPING_WORDS)


def _is_work(op):
    """Say whether `op` is worth a line: no wrapper, no input or summary, no arithmetic on shapes and counters."""
    if op.type in BOOKKEEPING or _is_input(op.type):
        return False
    tensors = _tensors(op)
    if op.type in PYTHON_OPS or any(t.dtype.base_dtype.name == "string" for t in tensors):
        return True
    whole = all(t.dtype.is_integer or t.dtype.is_bool for t in tensors)
    sizes = [_elements(t) for t in tensors]
    return not (whole and all(size is not None and size <= SMALL for size in sizes))


def _tensors(op):
    """Return inputs and outputs that hold data: no handles, variants or control edges."""
    return [
        t for t in list(op.inputs) + list(op.outputs) if t.dtype.base_dtype.name not in ("resource", "variant")
    ]


def _elements(tensor):
    """Return the number of elements, unknown dimensions counted as one; None where the rank is unknown."""
    if tensor.shape.rank is None:
        return None
    total = 1
    for size in tensor.shape.as_list():
        total *= size if size is not None else 1
    return total


def _bytes(op):
    sizes = [(_elements(t), t.dtype.size) for t in _tensors(op)]
    if any(count is None for count, _ in sizes):
        return None
    return sum(count * (width or 1) for count, width in sizes)


def _add(records, node, kernels, recorded):
    """Count `node` in `records`, with its device the first time its like is met."""
    op = node.op
    dtypes = tuple(sorted({t.dtype.base_dtype.name for t in _tensors(op)}))
    path, line, function = node.spot or (None, None, "")
    key = (op.type, dtypes, path, line, function)
    if key in records:
        records[key]["count"] += 1
        records[key]["bytes"] = max(records[key]["bytes"] or 0, _bytes(op) or 0) or None
        return
    device, basis, why = _device(node, kernels, recorded)
    if why == "host-memory" and max([_elements(t) or 0 for t in _tensors(op)] or [0]) < LARGE:
        return
    records[key] = {
        "op": op.type,
        "count": 1,
        "dtypes": list(dtypes),
        "types": _type_attributes(op),
        "path": path,
        "line": line,
        "function": function,
        "graph": node.graph,
        "device": device,
        "basis": basis,
        "why": why,
        "bytes": _bytes(op),
        "jit": node.jit,
        "compiles": kernels.compiles(op) if kernels else None,
    }


def _device(node, kernels, recorded):
    """Return (device, basis, why) of an op, by the strongest knowledge there is."""
    op = node.op
    ran = _ran_on(op, recorded)
    if op.type in PYTHON_OPS:
        return "cpu", "ran" if ran else "kernels", "python"
    asked = "cpu" if "CPU" in (op.device or "").upper() else ""
    predicted, why = kernels.place(op) if kernels else (None, "")
    if ran:
        return ran, "ran", ("asked" if asked else why) if ran == "cpu" else ""
    if asked:
        return "cpu", "kernels" if kernels else "none", why or "asked"
    return predicted, "kernels" if kernels else "none", why


def _ran_on(op, recorded):
    """Return ``cpu``/``gpu`` where the recorded graphs agree on where `op` ran, else ""."""
    same = recorded.get((op.type, op.name.rsplit("/", 1)[-1]), ())
    exact = [d for name, d in same if name == op.name]
    devices = exact or [d for name, d in same if name.endswith("/" + op.name)]
    kinds = {"gpu" if "GPU" in device else "cpu" for device in devices}
    return kinds.pop() if len(kinds) == 1 else ""


def _type_attributes(op):
    """Return the type attributes of `op` by name; lists of types joined by a comma."""
    from tensorflow import dtypes

    found = {}
    for name, value in op.node_def.attr.items():
        if value.type:
            found[name] = dtypes.as_dtype(value.type).base_dtype.name
        elif value.list.type:
            found[name] = ",".join(dtypes.as_dtype(each).base_dtype.name for each in value.list.type)
    return found


class _Kernels:
    """The kernel registry of this process: which op and dtype has a kernel for which device."""

    def __init__(self):
        from tensorflow.python.framework import kernels, op_def_registry

        self._ops = op_def_registry
        self._by_op = collections.defaultdict(lambda: collections.defaultdict(list))
        for kernel in kernels.get_all_registered_kernels().kernel:
            if not kernel.label:
                self._by_op[kernel.op][kernel.device_type].append(kernel)
        self._knows_xla = any("XLA_GPU_JIT" in devices for devices in self._by_op.values())

    def place(self, op):
        """Return (``cpu`` | ``gpu`` | None, why) for `op` on a machine with a GPU; None where no kernel is known."""
        devices = self._by_op.get(op.type)
        if not devices or not any(devices.get(kind) for kind in ("CPU", "GPU", "DEFAULT")):
            return None, ""
        candidates = devices.get("GPU", []) + devices.get("DEFAULT", [])
        if not candidates:
            return "cpu", "no-kernel"
        match = next((k for k in candidates if self._fits(k, op)), None)
        if match is None:
            return "cpu", "dtype"
        return ("cpu", "host-memory") if self._on_host(match, op) else ("gpu", "")

    def compiles(self, op):
        """Say whether XLA has a kernel for `op`; None where this process has not loaded XLA's kernels."""
        if not self._knows_xla or op.type not in self._by_op:
            return None
        return "XLA_GPU_JIT" in self._by_op[op.type]

    def _fits(self, kernel, op):
        attributes = op.node_def.attr
        for constraint in kernel.constraint:
            allowed = constraint.allowed_values.list.type
            value = attributes[constraint.name] if constraint.name in attributes else None
            if value is None or not allowed:
                continue
            if not set(value.list.type or [value.type]) <= set(allowed):
                return False
        return True

    def _on_host(self, kernel, op):
        """Say whether all that the kernel reads and writes stays in host memory."""
        definition = self._ops.get(op.type)
        if definition is None:
            return False
        outputs = [arg.name for arg in definition.output_arg]
        inputs = [arg.name for arg in definition.input_arg]
        host = set(kernel.host_memory_arg)
        return bool(outputs) and set(outputs) <= host and set(inputs) <= host
