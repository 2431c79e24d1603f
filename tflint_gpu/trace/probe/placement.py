"""Where every op of the traced graphs runs, or would run on a GPU. Part of the probe: stdlib + TensorFlow.

How the rest of the probe calls this module and its neighbour `layers`:

* ``start_recording()`` once, just before the first step runs (it initialises the runtime, so never
  earlier: the script may still want to set memory growth). Does nothing on a machine without a GPU.
* ``layers.watch_layers(layer_class, is_project)`` once Keras is imported: remembers the line that called or made
  each layer, so that ops of built-in layers are charged to it rather than to ``fit``.
* ``layers.watch_compile(model_class)`` likewise (``keras.Model``); then ``layers.keras_would_jit(model)`` says
  whether Keras 3 would compile this model's step with XLA on a GPU: hand it to the parent as ``keras_auto_jit``.
* ``collect(functions, is_project, in_step)`` at the end of the window -> list of plain dicts (see `collect`).

``is_project(filename) -> bool`` tells the user's files by the name that Python gives them in a frame.
"""

import collections

from .layers import layer_of
from .registry import Kernels, cuda_build, has_gpu
from .spots import Spots

#: Wrappers and bookkeeping that stand for no work of their own: the ops inside wrappers are reported instead.
BOOKKEEPING = frozenset(
    """
    Const Placeholder PlaceholderWithDefault NoOp Identity IdentityN StopGradient PreventGradient Assert _Arg
    _Retval If StatelessIf While StatelessWhile Case StatelessCase PartitionedCall StatefulPartitionedCall
    XlaLaunch SymbolicGradient RemoteCall Switch Merge Enter Exit NextIteration LoopCond VarHandleOp
    VarIsInitializedOp DestroyResourceOp SaveV2 RestoreV2 MergeV2Checkpoints ShardedFilename Shape ShapeN Size
    Rank BroadcastGradientArgs BroadcastArgs ConcatOffset OptionalHasValue OptionalGetValue OptionalFromValue
    OptionalNone FakeParam ReadVariableOp HashTableV2 MutableHashTableV2 MutableDenseHashTableV2
    """.split()
)
BOOKKEEPING_WORDS = ("Dataset", "Iterator", "Summary")
#: Loops inside a graph: no op of their own, but every round of theirs launches what is in the body.
LOOPS = frozenset(("While", "StatelessWhile"))
#: These run Python, whatever device TensorFlow registers them for.
PYTHON_OPS = frozenset(("PyFunc", "PyFuncStateless", "EagerPyFunc"))
#: Up to this many elements, whole numbers are shapes, counters and seeds: cheap wherever they are.
SMALL = 64
#: Kernels registered for the GPU that work in host memory matter only from this many elements on.
LARGE = 1024

_recording = [False]


def start_recording():
    """Keep the graphs that TensorFlow really runs, with the device of every node, from the next function on."""
    if not has_gpu():
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

    `in_step(concrete_function) -> bool` says whether one belongs to the training step (default: all do).
    Functions of tf.data pipelines are left out: the CPU is their place. Returns records, one for each op type,
    dtypes, line and function, ordered by line, with the keys

    * ``op``, ``count``, ``names`` of the nodes, ``dtypes`` (of inputs and outputs, each once) and ``types``
      (``{"T": "float32"}``);
    * ``path`` as frames name it, ``line`` (None where no project line leads there), ``function``, ``graph``;
    * ``device`` (``cpu``, ``gpu`` or None: not known here), ``basis`` (``ran`` | ``kernels`` | ``none``) and
      ``why`` (``no-kernel`` | ``dtype`` | ``host-memory`` | ``asked`` | ``python`` | "");
    * ``bytes`` of inputs and outputs, unknown dimensions counted as one; None where a rank is unknown;
    * ``in_step``, ``jit`` (``jit_compile`` holds for its graph), ``compiles`` (XLA has a kernel for it; None
      where this process never loaded XLA);
    * ``body``, for a loop of the graph (``While``): the ops of one round; None for all other ops.

    Raises TimeoutError where that takes over `spots.LIMIT` seconds: some graphs would look like all of them.
    """
    spots = Spots(is_project)
    kernels = Kernels() if cuda_build() else None
    recorded = _recorded()
    merged = {}
    for concrete in functions:
        try:
            found = _of_function(concrete, spots, kernels, recorded)
            step = bool(in_step(concrete)) if in_step else True
        except TimeoutError:
            raise
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
    other["body"] = max(other["body"], record["body"]) if other["body"] is not None else None
    sizes = [size for size in (other["bytes"], record["bytes"]) if size is not None]
    other["bytes"] = max(sizes) if sizes else None


def _of_function(concrete, spots, kernels, recorded):
    """Return {key: record} of one traced function and of all graphs nested in it."""
    records = {}
    graph = concrete.graph
    if graph.name.startswith("Dataset_"):
        return records
    nodes = list(_nodes(graph, _must_compile(concrete), spots))
    forward = _forward_spots(nodes)
    for node in nodes:
        _charge_to_cause(node, forward)
        if node.op.type in LOOPS:
            _add_loop(records, node)
        elif _is_work(node.op):
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


def _nodes(graph, jit, spots):
    """Yield every op of `graph` and of the functions it calls, each function once."""
    todo, seen = [(graph, jit, None)], set()
    while todo:
        graph, jit, caller = todo.pop()
        for op in graph.get_operations():
            spot = spots.of(op) or caller
            yield _Node(op, graph.name, jit, spot)
            if _is_input(op.type):
                continue
            for name, attributes in _called(op):
                nested = _graph_of(graph, name)
                if name in seen or nested is None:
                    continue
                seen.add(name)
                compiled = "_XlaMustCompile" in op.node_def.attr and op.node_def.attr["_XlaMustCompile"].b
                todo.append((nested, jit or compiled or attributes.get("_XlaMustCompile", False), spot))


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
    made = layer_of(scope + "/" if scope else node.op.name)
    if made and not _inside_layer(node.spot, made):
        node.spot = made


def _differentiated(name):
    """Return the name of the forward op or scope whose gradient the op `name` computes, "" for other ops.

    Tapes write ``gradient_tape/<scope>/<Op>Grad``, loops and branches ``…gradients/<scope>/<Op>_grad/<Op>Grad``.
    """
    inner = name.rpartition("gradients/")[2] if "gradients/" in name else ""
    if not inner and name.startswith("gradient_tape/"):
        inner = name[len("gradient_tape/") :]
    parts = inner.split("/")[:-1]
    return "/".join(part[: -len("_grad")] if part.endswith("_grad") else part for part in parts)


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


def _add_loop(records, node):
    """Note a loop of the graph; a loop and its gradient stand at one line and are one record."""
    op = node.op
    path, line, function = node.spot or (None, None, "")
    known = records.get((op.type, path, line, function))
    if known is not None:
        known["count"] += 1
        known["names"].append(op.name)
        known["body"] += _body_ops(op)
        return
    records[op.type, path, line, function] = {
        "op": op.type,
        "count": 1,
        "names": [op.name],
        "dtypes": [],
        "types": {},
        "path": path,
        "line": line,
        "function": function,
        "graph": node.graph,
        "device": None,
        "basis": "none",
        "why": "",
        "bytes": None,
        "jit": node.jit,
        "compiles": None,
        "body": _body_ops(op),
    }


def _body_ops(op):
    """Return how many ops one round of the loop `op` runs."""
    body = _graph_of(op.graph, op.node_def.attr["body"].func.name)
    return sum(_is_work(each) for each in body.get_operations()) if body is not None else 0


def _add(records, node, kernels, recorded):
    """Count `node` in `records`, with its device the first time its like is met."""
    op = node.op
    dtypes = tuple(sorted({t.dtype.base_dtype.name for t in _tensors(op)}))
    path, line, function = node.spot or (None, None, "")
    key = (op.type, dtypes, path, line, function)
    if key in records:
        records[key]["count"] += 1
        records[key]["names"].append(op.name)
        records[key]["bytes"] = max(records[key]["bytes"] or 0, _bytes(op) or 0) or None
        return
    device, basis, why = _device(node, kernels, recorded)
    if why == "host-memory" and max([_elements(t) or 0 for t in _tensors(op)] or [0]) < LARGE:
        return
    records[key] = {
        "op": op.type,
        "count": 1,
        "names": [op.name],
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
        "body": None,
    }


def _device(node, kernels, recorded):
    """Return (device, basis, why) of an op, by the strongest knowledge there is."""
    op = node.op
    ran = _ran_on(op, recorded)
    if op.type in PYTHON_OPS:
        return "cpu", "ran" if ran else "kernels", "python"
    # A whole address (/job:…) was written by TensorFlow, which keeps ops beside their variables, not by the user.
    asked = "CPU" in op.device.upper() and "/job:" not in op.device
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
