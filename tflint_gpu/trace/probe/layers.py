"""Which line called or made each Keras layer, and what ``compile`` asked for. Part of the probe: stdlib only."""

import functools
import inspect
import re
import sys

_layer_spots = {}
_call_spots = {}
#: Names of layers by the scope that a graph gave their ops; None where two had the same in different graphs.
_scopes = {}
_asked_jit = {}


def watch_layers(layer_class, is_project):
    """Remember the project lines that construct and first call each instance of `layer_class` (Keras' ``Layer``).

    A functional model gets its ops from the call; a layer that only Keras calls has the other line alone.
    """
    _watch_calls(layer_class, is_project)
    original = layer_class.__init__

    @functools.wraps(original)
    def init(self, *args, **kwargs):
        original(self, *args, **kwargs)
        spot = _constructor_spot(self, is_project)
        if spot:
            # Layers of one name that two lines made (cells of recurrent layers) cannot be told apart by it.
            known = _layer_spots.setdefault(self.name, spot)
            _layer_spots[self.name] = spot if known == spot else None

    # Keras reads the constructor's signature to build a layer's config, and does not look through wrappers.
    init.__signature__ = inspect.signature(original)
    layer_class.__init__ = init


def _watch_calls(layer_class, is_project):
    original = layer_class.__call__

    @functools.wraps(original)
    def call(self, *args, **kwargs):
        if self.name not in _call_spots:
            _call_spots[self.name] = _caller_spot(is_project)
        result = original(self, *args, **kwargs)
        _note_scope(self.name, result)
        return result

    layer_class.__call__ = call


def _note_scope(layer, result):
    """Remember the scope of the graph that `layer` stands in, by the name of the op that made `result`."""
    while isinstance(result, (list, tuple)) and result:
        result = result[0]
    graph = getattr(result, "graph", None)
    if graph is None or not hasattr(graph, "get_name_scope"):
        return
    outer = graph.get_name_scope()
    prefix = outer + "/" if outer else ""
    name = result.op.name
    if not name.startswith(prefix) or "/" not in name[len(prefix) :]:
        return
    scope = prefix + name[len(prefix) :].partition("/")[0]
    if re.sub(r"(_\d+)+$", "", scope.rpartition("/")[2]) != re.sub(r"(_\d+)+$", "", layer):
        return
    if _scopes.setdefault(scope, layer) != layer:
        _scopes[scope] = None


def _caller_spot(is_project):
    """Return (file, line, function) of the project code that calls a layer, None where Keras itself does."""
    frame = sys._getframe(2)
    while frame is not None:
        code = frame.f_code
        if is_project(code.co_filename):
            return (code.co_filename, frame.f_lineno, code.co_name)
        # Only wrappers may stand between: subclasses that pass a call on, Keras' handler of errors.
        if code.co_name not in ("__call__", "error_handler"):
            return None
        frame = frame.f_back
    return None


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


def layer_of(name):
    """Return where the innermost layer in the scopes of op `name` was called, or else made; None where unknown.

    Graphs number a scope that comes again, so ``dense_1`` may also be the second use of ``dense``: what was seen
    when the layer was called goes before its name.
    """
    parts = name.split("/")[:-1]
    for end in range(len(parts), 0, -1):
        part, seen = parts[end - 1], _scopes.get("/".join(parts[:end]))
        for layer in (seen,) if seen else (part, re.sub(r"_\d+$", "", part)):
            spot = _call_spots.get(layer) or _layer_spots.get(layer)
            if spot:
                return spot
    return None


def watch_compile(model_class):
    """Remember the ``jit_compile`` that ``model_class.compile`` was asked for: Keras keeps what it decided."""
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

    Keras decides when ``compile`` runs, and on a machine without a GPU against it, so its decision is made
    again here without that clause: asked for, or left at "auto"; every layer able; no strategy, no determinism.
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
